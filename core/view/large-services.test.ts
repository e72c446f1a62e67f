import { expect, test } from 'vitest'
import type { EndpointRecord } from '../store/index.js'
import { heapMb } from '../testing/heap.js'
import { largeService } from '../testing/large-service.js'
import { countingLooks, service, syncedStore } from '../testing/objects.js'
import { View } from './view.js'

// What must hold however large a service is, however many watch it, and however far they lag.

test('a flood of changes to a service of thousands of endpoints holds memory flat', () => {
  const store = syncedStore()
  const large = largeService(store, { endpoints: 2000 })
  const view = new View(store)
  const watches = [
    view.watchNode({ nodeName: 'elsewhere' }),
    view.watchNode({ nodeName: 'node-1' }),
    view.watchCluster(),
  ]
  const flood = (changes: number) => {
    for (let change = 0; change < changes; change++) {
      large.change()
      for (const watch of watches) [...(watch.poll()?.sets ?? [])].map((item) => item.encode())
    }
  }
  flood(60)
  const before = heapMb()
  flood(120)
  expect(heapMb() - before).toBeLessThan(5)
})

test('services that come, are watched and go leave nothing behind but what the log holds', () => {
  const store = syncedStore()
  const watch = new View(store).watchNode({ nodeName: 'elsewhere' })
  const churn = (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      largeService(store, { endpoints: 1000 })
      watch.poll()
      store.update((tx) => tx.replaceAll({ services: [], endpoints: [], nodes: [], serviceCidrs: [] }))
      watch.poll()
    }
  }
  churn(100)
  const before = heapMb()
  churn(60)
  expect(heapMb() - before).toBeLessThan(5)
})

/** How often endpoints are looked at until all nodes know of the change of one of them. */
function looksAtOneChange(nodes: number, externalTrafficToLocal: boolean): number {
  const looks: (() => number)[] = []
  const wrap = (record: EndpointRecord) => {
    const { endpoint, looked } = countingLooks(record)
    looks.push(looked)
    return endpoint
  }
  const total = () => looks.reduce((sum, looked) => sum + looked(), 0)
  const store = syncedStore()
  const large = largeService(store, { endpoints: nodes, externalTrafficToLocal, wrap })
  const view = new View(store)
  const watches = Array.from({ length: nodes }, (_, node) => view.watchNode({ nodeName: `node-${node}` }))
  for (const watch of watches) for (const _ of watch.poll()?.sets ?? []);
  const before = total()
  large.change()
  for (const watch of watches) expect(watch.poll()).toBeDefined()
  return total() - before
}

test.each([
  { policy: 'Cluster', externalTrafficToLocal: false },
  { policy: 'Local', externalTrafficToLocal: true },
])('a change costs a few looks at endpoints a watcher, where every node runs one: policy $policy', (given) => {
  expect(looksAtOneChange(300, given.externalTrafficToLocal) / 300).toBeLessThan(30)
})

test('watchers that lag by other numbers of revisions share what they all missed', () => {
  const store = syncedStore()
  for (const name of ['a', 'b', 'c']) store.update((tx) => tx.setService(service(name)))
  const view = new View(store)
  const watches = [0, 1, 2].map((node) => view.watchNode({ nodeName: `node-${node}` }))
  for (const watch of watches) watch.poll()
  for (const [revision, name] of ['a', 'b', 'c'].entries()) {
    store.update((tx) => tx.deleteService('default', name))
    for (const watch of watches.slice(revision + 1)) watch.poll()
  }
  const told = watches.map((watch) => [...(watch.poll()?.deletes ?? [])])
  expect(told.map((deletes) => deletes.length)).toEqual([3, 2, 1])
  const deletedLast = told.map((deletes) => deletes.find(({ path }) => path === 'default/c'))
  expect(new Set(deletedLast).size).toBe(1)
})
