import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Store, type Transaction } from '../store/index.js'
import { endpoint, node, service } from '../testing/objects.js'
import type { ChangeSet, Watch } from './change-set.js'
import { GlobalWatch } from './global-watch.js'
import { EndpointItem } from './items.js'
import { NodeWatch } from './node-watch.js'
import { selectEndpoints } from './selection.js'

// Any sequence of updates, any pace of the watchers: what a watcher knows equals a full recompute; it never sees an endpoint
// without its service, is never told what it knows, and is never told to forget what it does not know.

/** What a watcher knows: path by path, the encoded message. */
class Known {
  readonly #items = new Map<string, string>()

  apply(changeSet: ChangeSet): void {
    if (changeSet.reset) this.#items.clear()
    let count = 0
    for (const item of changeSet.sets) {
      const key = `${item.set} ${item.path}`
      const bytes = hex(item.encode())
      expect(this.#items.get(key), `${item.path} is told again although nothing in it changed`).not.toBe(bytes)
      this.#items.set(key, bytes)
      if (item.set === localv1.Set.ENDPOINTS) this.#expectService(item.path)
      count++
    }
    for (const { set, path } of changeSet.deletes) {
      expect(this.#items.delete(`${set} ${path}`), `${path} is deleted although it is not known`).toBe(true)
      count++
    }
    for (const key of this.#items.keys()) {
      if (key.startsWith(`${localv1.Set.ENDPOINTS} `)) this.#expectService(key.slice(2))
    }
    expect(count > 0 || changeSet.reset, 'an empty change set was sent').toBe(true)
  }

  #expectService(endpointPath: string): void {
    const path = endpointPath.split('/').slice(0, 2).join('/')
    expect(this.#items.has(`${localv1.Set.SERVICES} ${path}`), `${endpointPath} has no service`).toBe(true)
  }

  get items(): [string, string][] {
    return [...this.#items].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

const nodeNames = ['node-a', 'node-b', 'node-c']
const zones = ['', 'zone-a', 'zone-b']

/** Mostly none: services without any hint take a way of their own. */
const someHints = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.record({ zones: fc.subarray(['zone-a', 'zone-b']), nodes: fc.subarray(nodeNames) }) },
)

const anEndpoint = fc
  .record({
    ip: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', 'fd00::1', 'fd00::2'),
    podName: fc.constantFrom('', 'pod-1', 'pod-2'),
    node: fc.constantFrom('', ...nodeNames),
    ready: fc.boolean(),
    serving: fc.boolean(),
    terminating: fc.boolean(),
    hints: someHints,
    ports: fc.constantFrom(
      [{ name: 'http', port: 8080 }],
      [{ name: 'http', port: 8081 }],
      [{ name: 'admin', port: 9 }],
      undefined,
      [],
    ),
  })
  .map(({ ip, hints, ...rest }) => endpoint(ip, { ...rest, ...hints }))

const aService = fc
  .record({
    name: fc.constantFrom('a', 'b'),
    type: fc.constantFrom('ClusterIP', 'NodePort'),
    internalTrafficToLocal: fc.boolean(),
    externalTrafficToLocal: fc.boolean(),
    nodePort: fc.constantFrom(0, 30080),
    admin: fc.boolean(),
  })
  .map(({ name, nodePort, admin, ...rest }) => {
    const http = { name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080, nodePort }
    const second = { name: 'admin', protocol: localv1.Protocol.TCP, port: 81, targetPortName: 'admin' }
    return service(name, { ...rest, ports: admin ? [http, second] : [http] })
  })

type Write = (tx: Transaction) => void

const aWrite: fc.Arbitrary<Write> = fc.oneof(
  aService.map(
    (service): Write =>
      (tx) =>
        tx.setService(service),
  ),
  fc.constantFrom('a', 'b').map(
    (name): Write =>
      (tx) =>
        tx.deleteService('default', name),
  ),
  fc
    .record({
      source: fc.constantFrom('s1', 's2', 's3'),
      service: fc.constantFrom('a', 'b'),
      endpoints: fc.array(anEndpoint, { maxLength: 4 }),
    })
    .map(
      ({ source, ...rest }): Write =>
        (tx) =>
          tx.setEndpoints({ namespace: 'default', name: source, ...rest }),
    ),
  fc.constantFrom('s1', 's2', 's3').map(
    (name): Write =>
      (tx) =>
        tx.deleteEndpoints('default', name),
  ),
  fc.record({ name: fc.constantFrom(...nodeNames), zone: fc.constantFrom(...zones) }).map(
    ({ name, zone }): Write =>
      (tx) =>
        tx.setNode(node(name, zone)),
  ),
  fc.constantFrom(...nodeNames).map(
    (name): Write =>
      (tx) =>
        tx.deleteNode(name),
  ),
)

const aStep = fc.record({
  writes: fc.array(aWrite, { minLength: 1, maxLength: 4 }),
  /** Which watchers ask after this update. */
  askers: fc.subarray([0, 1, 2, 3, 4]),
})

const newWatches = (store: Store): Watch[] => [
  ...nodeNames.map(
    (nodeName) => new NodeWatch(store, { nodeName, extraSets: [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS] }),
  ),
  new NodeWatch(store, { nodeName: 'unknown' }),
  new GlobalWatch(store),
]

function fullRecompute(store: Store, index: number): [string, string][] {
  const known = new Known()
  const changeSet = newWatches(store)[index]?.poll()
  if (changeSet) known.apply(changeSet)
  return known.items
}

test.each([
  { name: 'a long log', maxLoggedChanges: 10_000 },
  { name: 'a log so short that watchers fall out of it', maxLoggedChanges: 6 },
])('watchers know exactly what a full recompute gives, with $name', ({ maxLoggedChanges }) => {
  fc.assert(
    fc.property(fc.array(aStep, { minLength: 1, maxLength: 25 }), (steps) => {
      const store = new Store({ maxLoggedChanges })
      store.update((tx) => tx.setSynced('services', 'endpoints', 'nodes'))
      const watches = newWatches(store)
      const knowns = watches.map(() => new Known())
      const ask = (index: number) => {
        const changeSet = watches[index]?.poll()
        if (changeSet) knowns[index]?.apply(changeSet)
        expect(knowns[index]?.items).toEqual(fullRecompute(store, index))
      }
      for (const { writes, askers } of steps) {
        store.update((tx) => {
          for (const write of writes) write(tx)
        })
        for (const asker of askers) ask(asker)
      }
      for (const index of watches.keys()) ask(index)
    }),
    { numRuns: 400 },
  )
})

test('a view holds exactly the endpoints that selection gives, whatever is shared between nodes', () => {
  fc.assert(
    fc.property(fc.array(aWrite, { minLength: 1, maxLength: 20 }), (writes) => {
      const store = new Store()
      store.update((tx) => {
        tx.setSynced('services', 'endpoints', 'nodes')
        for (const write of writes) write(tx)
      })
      for (const nodeName of [...nodeNames, 'unknown']) {
        const zone = store.node(nodeName)?.topology?.zone ?? ''
        const expected = store.entries().flatMap((entry) => {
          if (!entry.service) return []
          const endpoints = [...entry.sources.values()].flat()
          const { used } = selectEndpoints(entry.service, endpoints, { name: nodeName, zone })
          const { ports } = entry.service
          return used.map((selected) => hex(new EndpointItem('', selected, ports).encode()))
        })
        const told = [...(new NodeWatch(store, { nodeName }).poll()?.sets ?? [])].flatMap((item) =>
          item.set === localv1.Set.ENDPOINTS ? [hex(item.encode())] : [],
        )
        expect(told.sort()).toEqual(expected.sort())
      }
    }),
    { numRuns: 500 },
  )
})

test('the messages of items are what they encode', () => {
  const store = new Store()
  store.update((tx) => {
    tx.setService(service('a'))
    tx.setEndpoints({ namespace: 'default', name: 's1', service: 'a', endpoints: [endpoint('10.0.0.1')] })
    tx.setSynced('services', 'endpoints', 'nodes')
  })
  for (const item of new NodeWatch(store, { nodeName: 'node-a' }).poll()?.sets ?? []) {
    const schema = item.set === localv1.Set.SERVICES ? localv1.ServiceSchema : localv1.EndpointSchema
    expect(toBinary<typeof schema>(schema, item.message as never)).toEqual(item.encode())
  }
})

test('an endpoint that is written out is the message that the library would make', () => {
  fc.assert(
    fc.property(fc.array(anEndpoint, { minLength: 1, maxLength: 4 }), aService, (endpoints, service) => {
      const store = new Store()
      store.update((tx) => {
        tx.setService(service)
        tx.setEndpoints({ namespace: 'default', name: 's1', service: service.name, endpoints })
        tx.setSynced('services', 'endpoints', 'nodes')
      })
      for (const item of new NodeWatch(store, { nodeName: 'node-a' }).poll()?.sets ?? []) {
        if (item.set === localv1.Set.ENDPOINTS)
          expect(fromBinary(localv1.EndpointSchema, item.encode())).toEqual(item.message)
      }
    }),
    { numRuns: 200 },
  )
})
