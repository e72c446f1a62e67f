import { setImmediate as nextLoop } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { ClusterItems } from '../sinks/api/cluster-watch.js'
import { NodeItems } from '../sinks/api/node-items.js'
import type { EndpointRecord, Transaction } from '../store/index.js'
import { endpoint, node, service, syncedStore } from '../testing/objects.js'
import { View } from './node-watch.js'
import { Turns } from './turns.js'

const pathsOf = (items: Iterable<{ readonly path: string }>) => [...items].map(({ path }) => path)

test('a watcher waits for a change that means something to it', async () => {
  const store = syncedStore()
  const view = new View(store)
  const watch = new NodeItems(view).watch({ nodeName: 'node-a' })
  expect((await watch.next()).reset).toBe(true)
  const next = watch.next()
  store.update((tx) => tx.setEndpoints({ namespace: 'default', name: 's', service: 'nobody', endpoints: [] }))
  await nextLoop()
  store.update((tx) => tx.setService(service('a')))
  expect(pathsOf((await next).sets)).toEqual(['default/a'])
})

test('a change that comes while an earlier one is worked out is told without another one', async () => {
  const store = syncedStore()
  // Others come in between at every step.
  const watch = new NodeItems(new View(store, new Turns(0))).watch({ nodeName: 'node-a' })
  await watch.next()
  const next = watch.next()
  // Nothing for this node, but there is something to work out.
  store.update((tx) => tx.setEndpoints({ namespace: 'default', name: 's', service: 'nobody', endpoints: [] }))
  const changesSince = vi.spyOn(store, 'changesSince')
  while (changesSince.mock.calls.length === 0) await nextLoop()
  store.update((tx) => tx.setService(service('a')))
  expect(pathsOf((await next).sets)).toEqual(['default/a'])
})

test('a node that changes its zone is told of one revision, though the store moves on meanwhile', async () => {
  const store = syncedStore()
  const inZone = (zone: string) => (tx: Transaction) => tx.setNode(node('node-a', zone))
  const endpointsAt = (second: string) => (tx: Transaction) => {
    const endpoints = [
      endpoint('10.0.0.1', { podName: 'first', zones: ['zone-a'] }),
      endpoint('10.0.0.2', { podName: second, zones: ['zone-b'] }),
    ]
    tx.setEndpoints({ namespace: 'default', name: 's', service: 'a', endpoints })
  }
  store.update((tx) => {
    tx.setService(service('a'))
    tx.setService(service('other'))
    inZone('zone-a')(tx)
    endpointsAt('second')(tx)
  })
  const watch = new NodeItems(new View(store, new Turns(0))).watch({ nodeName: 'node-a' })
  expect(pathsOf((await watch.next()).sets)).toEqual(['default/a', 'default/other', 'default/a/first'])
  const next = watch.next()
  const changesSince = vi.spyOn(store, 'changesSince')
  store.update((tx) => {
    inZone('zone-b')(tx)
    tx.setService(service('other', { type: 'NodePort' }))
  })
  while (changesSince.mock.calls.length === 0) await nextLoop()
  store.update(endpointsAt('third'))
  const { sets, deletes } = await next
  expect(pathsOf(sets)).toEqual(['default/other', 'default/a/second'])
  expect(pathsOf(deletes)).toEqual(['default/a/first'])
  const last = await watch.next()
  expect([pathsOf(last.sets), pathsOf(last.deletes)]).toEqual([['default/a/third'], ['default/a/second']])
})

test('a watcher waits for its turn once, however many changes come before it', async () => {
  const store = syncedStore()
  // One that is never over: on a busy machine it would be, and the watcher would wait for the next one.
  const turns = new Turns(Number.POSITIVE_INFINITY)
  const watch = new NodeItems(new View(store, turns)).watch({ nodeName: 'node-a' })
  await watch.next()
  const next = watch.next()
  const enter = vi.spyOn(turns, 'enter')
  for (const name of ['a', 'b', 'c']) {
    store.update((tx) => tx.setService(service(name)))
    await Promise.resolve()
  }
  expect(pathsOf((await next).sets)).toEqual(['default/a', 'default/b', 'default/c'])
  expect(enter).toHaveBeenCalledTimes(1)
})

test('a node is told when the changes began that matter to it', () => {
  const store = syncedStore()
  const serve = (last: number, trigger?: number) => (tx: Transaction) => {
    for (const name of ['local', 'plain']) {
      const endpoints = [endpoint(`10.0.0.${last}`, { podName: 'pod', node: 'node-a' })]
      tx.setEndpoints({ namespace: 'default', name, service: name, endpoints }, trigger)
    }
  }
  store.update((tx) => {
    tx.setService(service('local', { internalTrafficToLocal: true }))
    tx.setService(service('plain'))
    serve(1)(tx)
  })
  const view = new View(store)
  const watches = ['node-a', 'elsewhere'].map((nodeName) => view.watchNode({ nodeName }))
  for (const watch of watches) watch.poll()
  store.update(serve(2, 7))
  expect(watches.map((watch) => watch.poll()?.triggers.map(({ service }) => service))).toEqual([
    ['default/local', 'default/plain'],
    ['default/plain'],
  ])
})

test('an endpoint that stood in for ready ones is gone when a ready one comes in another slice', () => {
  const store = syncedStore()
  const write = (name: string, one: EndpointRecord) => (tx: Transaction) =>
    tx.setEndpoints({ namespace: 'default', name, service: 'web', endpoints: [one] })
  store.update((tx) => {
    tx.setService(service('web'))
    write('s1', endpoint('10.0.0.1', { podName: 'old', ready: false, terminating: true }))(tx)
  })
  const watch = new NodeItems(new View(store)).watch({ nodeName: 'node-a' })
  expect(pathsOf(watch.poll()?.sets ?? [])).toEqual(['default/web', 'default/web/old'])
  store.update(write('s2', endpoint('10.0.0.2', { podName: 'new' })))
  const change = watch.poll()
  expect([pathsOf(change?.sets ?? []), pathsOf(change?.deletes ?? [])]).toEqual([
    ['default/web/new'],
    ['default/web/old'],
  ])
})

test('a watch that is closed ends its wait, gives back its bookmark and says nothing more', async () => {
  const store = syncedStore()
  const view = new View(store)
  const release = vi.spyOn(store, 'release')
  for (const watch of [view.watchNode({ nodeName: 'node-a' }), new ClusterItems(view).watch()]) {
    await watch.next()
    const next = watch.next()
    watch.close(new Error('gone'))
    await expect(next).rejects.toThrow('gone')
    await expect(watch.next()).rejects.toThrow('gone')
    expect(watch.poll()).toBeUndefined()
  }
  expect(release).toHaveBeenCalledTimes(2)
})

test('a watch has one bookmark at a time', () => {
  const store = syncedStore()
  const watch = new View(store).watchNode({ nodeName: 'node-a' })
  const [made, released] = [vi.spyOn(store, 'bookmark'), vi.spyOn(store, 'release')]
  for (let change = 0; change < 5; change++) {
    store.update((tx) => tx.setService(service('a', { healthCheckNodePort: change + 1 })))
    watch.poll()
  }
  expect(made.mock.calls.length - released.mock.calls.length).toBe(1)
})

/** For each of some workers, in which round of the event loop it was its turn. */
async function roundsOf(turns: Turns, workers: number): Promise<number[]> {
  let round = 0
  const rounds: number[] = []
  const work = async () => {
    await turns.next()
    rounds.push(round)
  }
  const working = Promise.all(Array.from({ length: workers }, work))
  while (rounds.length < workers) {
    await nextLoop()
    round++
  }
  await working
  return rounds
}

test('when a turn is over, everything else has its time before the next one', async () => {
  const rounds = await roundsOf(new Turns(0), 10)
  expect(new Set(rounds).size).toBe(10)
})

test('as many work in one turn as there is time', async () => {
  const rounds = await roundsOf(new Turns(60_000), 1000)
  expect(new Set(rounds).size).toBe(1)
})

test('they work in the order of asking', async () => {
  const turns = new Turns(0)
  const order: number[] = []
  await Promise.all([1, 2, 3].map((worker) => turns.next().then(() => order.push(worker))))
  expect(order).toEqual([1, 2, 3])
})

test('a turn is over after its time', async () => {
  const turns = new Turns(5)
  expect(turns.isOver).toBe(true)
  await turns.next()
  expect(turns.isOver).toBe(false)
  const end = performance.now() + 5
  while (performance.now() < end);
  expect(turns.isOver).toBe(true)
})
