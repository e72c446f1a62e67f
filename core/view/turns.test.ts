import { expect, test } from 'vitest'
import { endpoint, service, syncedStore } from '../testing/objects.js'
import { View } from './node-watch.js'
import { finish, SharedWork, type Work } from './turns.js'

test('work that several callers need is done once', () => {
  let steps = 0
  function* counting(): Work<string> {
    for (; steps < 3; steps++) yield
    return 'done'
  }
  const shared = new SharedWork(counting())
  const [first, second] = [shared.finish(), shared.finish()]
  first.next()
  second.next()
  expect(finish(first)).toBe('done')
  expect(finish(second)).toBe('done')
  expect(steps).toBe(3)
})

test('work that fails fails for all who need it', () => {
  function* failing(): Work<string> {
    yield
    throw new Error('no memory')
  }
  const shared = new SharedWork(failing())
  expect(() => finish(shared.finish())).toThrow('no memory')
  expect(() => finish(shared.finish())).toThrow('no memory')
})

test('a service that cannot be worked out fails for every watcher, each time, and nobody waits for ever', async () => {
  const store = syncedStore()
  const broken = Object.defineProperty(endpoint('10.0.0.1'), 'podName', {
    get: () => {
      throw new Error('a bug')
    },
  })
  store.update((tx) => {
    tx.setService(service('web'))
    tx.setEndpoints({ namespace: 'default', name: 's', service: 'web', endpoints: [broken] })
  })
  const view = new View(store)
  for (let watcher = 0; watcher < 3; watcher++) {
    // Another revision, in which this service is the same.
    store.update((tx) => tx.setService(service(`other-${watcher}`)))
    await expect(view.watchNode({ nodeName: 'node-a' }).next()).rejects.toThrow('a bug')
  }
})
