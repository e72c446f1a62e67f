import { expect, test } from 'vitest'
import { ClusterItems } from '../sinks/api/cluster-watch.js'
import { NodeItems } from '../sinks/api/node-items.js'
import type { EndpointRecord } from '../store/index.js'
import { heapMb } from '../testing/heap.js'
import { type LargeServiceOptions, largeService } from '../testing/large-service.js'
import { countingLooks, endpoint, service, syncedStore } from '../testing/objects.js'
import { View } from './node-watch.js'
import { Turns } from './schedule.js'

// What must hold however large a service is, however many watch it, and however far they lag.

test('a flood of changes to a service of thousands of endpoints holds memory flat', () => {
  const store = syncedStore()
  const large = largeService(store, { endpoints: 2000 })
  const view = new View(store)
  const nodes = new NodeItems(view)
  const watches = [
    nodes.watch({ nodeName: 'elsewhere' }),
    nodes.watch({ nodeName: 'node-1' }),
    new ClusterItems(view).watch(),
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

test('a watcher that stays away while others follow a flood of changes costs one old state', () => {
  const store = syncedStore()
  const large = largeService(store, { endpoints: 2000 })
  const view = new View(store)
  const nodes = new NodeItems(view)
  const away = nodes.watch({ nodeName: 'node-2' })
  const following = [nodes.watch({ nodeName: 'elsewhere' }), new ClusterItems(view).watch()]
  for (const watch of [away, ...following]) watch.poll()
  const flood = (changes: number) => {
    for (let change = 0; change < changes; change++) {
      large.change()
      for (const watch of following) [...(watch.poll()?.sets ?? [])].map((item) => item.encode())
    }
  }
  flood(60)
  const before = heapMb()
  flood(121)
  expect(heapMb() - before).toBeLessThan(5)
  expect([...(away.poll()?.deletes ?? [])].map(({ path }) => path)).toEqual(['default/large/pod-0'])
})

test('services that come, are watched and go leave nothing behind but what the log holds', () => {
  const store = syncedStore()
  const watch = new NodeItems(new View(store)).watch({ nodeName: 'elsewhere' })
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
function looksAtOneChange(nodes: number, options: Partial<LargeServiceOptions>): number {
  const looks: (() => number)[] = []
  const wrap = (record: EndpointRecord) => {
    const { endpoint, looked } = countingLooks(record)
    looks.push(looked)
    return endpoint
  }
  const total = () => looks.reduce((sum, looked) => sum + looked(), 0)
  const store = syncedStore()
  const large = largeService(store, { ...options, endpoints: nodes, wrap })
  const view = new View(store)
  const items = new NodeItems(view)
  const watches = Array.from({ length: nodes }, (_, node) => items.watch({ nodeName: `node-${node}` }))
  for (const watch of watches) for (const _ of watch.poll()?.sets ?? []);
  const before = total()
  large.change()
  const told = watches.map((watch) => watch.poll())
  expect(told.filter((changeSet) => changeSet !== undefined).length).toBe(options.nodeHints ? 1 : nodes)
  return total() - before
}

test.each([
  ['the policy Cluster', {}],
  ['the policy Local', { externalTrafficToLocal: true }],
  ['hints for nodes', { nodeHints: true }],
])('a change costs a few looks at endpoints per watcher, where every node runs one: with %s', (_, options) => {
  expect(looksAtOneChange(300, options) / 300).toBeLessThan(30)
})

test('hints that keep the traffic of each node on it make a change no more costly than without hints', () => {
  const [plain, hinted] = [looksAtOneChange(300, {}), looksAtOneChange(300, { nodeHints: true })]
  expect(hinted).toBeLessThanOrEqual(2 * plain)
})

test('watchers that lag by other numbers of revisions share what they all missed', () => {
  const store = syncedStore()
  for (const name of ['a', 'b', 'c']) store.update((tx) => tx.setService(service(name)))
  const view = new View(store)
  const nodes = new NodeItems(view)
  const watches = [0, 1, 2].map((node) => nodes.watch({ nodeName: `node-${node}` }))
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

test('what a large update is to most nodes is one list, which they share; other nodes are told their own part instead', () => {
  const store = syncedStore()
  const services = ['a', 'b', 'c', 'd']
  const serve = (ready: boolean) =>
    store.update((tx) => {
      for (const [index, name] of services.entries()) {
        tx.setService(service(name))
        const endpoints = [0, 1].map((pod) =>
          endpoint(`10.0.${index}.${pod + 1}`, {
            podName: `pod-${pod}`,
            node: `node-${index}`,
            ready: ready || pod > 0,
          }),
        )
        tx.setEndpoints({ namespace: 'default', name, service: name, endpoints })
      }
    })
  serve(false)
  const view = new View(store)
  const nodes = new NodeItems(view)
  const watches = ['elsewhere', 'also-elsewhere', 'node-1'].map((nodeName) => nodes.watch({ nodeName }))
  for (const watch of watches) watch.poll()
  serve(true)
  const [first, second, own] = watches.map((watch) => [...(watch.poll()?.setBatches ?? [])])
  expect(first?.map(({ items }) => items.length)).toEqual([4])
  expect(second?.[0]?.items).toBe(first?.[0]?.items)
  expect(own?.[0]?.items).toBe(first?.[0]?.items)
  expect(own?.[0]?.except).toEqual(new Set(['default/b/pod-0']))
  expect(own?.slice(1).map(({ items }) => items.map(({ path }) => path))).toEqual([['default/b/pod-0']])
})

test('a large service is worked out in many small steps, whether it is new or most of it changes', async () => {
  let steps = 0
  class CountingTurns extends Turns {
    override get isOver(): boolean {
      steps++
      return false
    }
  }
  const store = syncedStore()
  const watch = new NodeItems(new View(store, new CountingTurns())).watch({ nodeName: 'node-1' })
  await watch.next()
  for (const podName of ['pod', 'other-pod']) {
    steps = 0
    largeService(store, { endpoints: 5000, wrap: (record) => ({ ...record, podName: `${podName}-${record.node}` }) })
    await watch.next()
    // The pauses are a few hundred endpoints apart.
    expect(steps).toBeGreaterThan(5000 / 500)
  }
})
