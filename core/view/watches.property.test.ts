import { setImmediate as nextLoop } from 'node:timers/promises'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1, silentLog } from '@kpng/api'
import { NodeState, type Operations } from '@kpng/client'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NodeItems as ReceivedItems } from '../../client/grpc/change-sets.js'
import type { ChangeSet } from '../sinks/api/change-set.js'
import { ClusterItems } from '../sinks/api/cluster-watch.js'
import { NodeItems } from '../sinks/api/node-items.js'
import { ToldNode } from '../sinks/local/index.js'
import { RelayedState } from '../sources/api/relayed-state.js'
import { Skips } from '../sources/skips.js'
import { type EndpointRecord, Store } from '../store/index.js'
import { endpoint, node, service, syncedStore } from '../testing/objects.js'
import { recordingLog } from '../testing/until.js'
import { type NodeChange, View } from './node-watch.js'
import type { Watch } from './schedule.js'
import { Turns } from './schedule.js'
import { aService, aWrite, nodeNames, someEndpoints, type Write } from './testing/generators.js'
import { type Contents, contentsOf, naiveExtras, naiveNodeView } from './testing/naive-view.js'

// Any sequence of updates, any pace of the watchers: what a watcher knows is what a naive function makes of the store's contents. It never
// sees an endpoint without its service, is never told what it knows, and is never told to forget what it does not know.

/** What a watcher was told: `set path` → the encoded message. */
class Told {
  readonly items = new Map<string, string>()

  apply(changeSet: ChangeSet): void {
    if (changeSet.reset) this.items.clear()
    let count = 0
    for (const item of changeSet.sets) {
      const key = `${item.set} ${item.path}`
      const bytes = Buffer.from(item.encode()).toString('hex')
      expect(this.items.get(key), `${item.path} is told again although nothing in it changed`).not.toBe(bytes)
      this.items.set(key, bytes)
      if (item.set === localv1.Set.ENDPOINTS) this.#expectService(item.path)
      count++
    }
    for (const { set, path } of changeSet.deletes) {
      expect(this.items.delete(`${set} ${path}`), `${path} is deleted although it is not known`).toBe(true)
      count++
    }
    for (const key of this.items.keys()) {
      if (key.startsWith(`${localv1.Set.ENDPOINTS} `)) this.#expectService(key.slice(2))
    }
    expect(count > 0 || changeSet.reset, 'an empty change set was sent').toBe(true)
  }

  #expectService(endpointPath: string): void {
    const path = serviceOf(endpointPath)
    expect(this.items.has(`${localv1.Set.SERVICES} ${path}`), `${endpointPath} has no service`).toBe(true)
  }
}

/** The service of the path of a service or of an endpoint. */
const serviceOf = (path: string) => path.split('/').slice(0, 2).join('/')

/** A watcher and its reader, which can be compared with what they should know. */
interface Watcher<Told extends { readonly revision: number } = { readonly revision: number }> {
  readonly watch: Watch<Told>
  apply(told: Told): void
  compare(contents: Contents): void
}

/** A node that is told items with paths, as over gRPC. */
function nodeWatcher(items: NodeItems, nodeName: string): Watcher<ChangeSet> {
  const told = new Told()
  const received = new ReceivedItems(silentLog)
  const state = new NodeState(nodeName)
  const watch = items.watch({ nodeName, extraSets: [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS] })
  return {
    watch,
    apply(changeSet) {
      told.apply(changeSet)
      state.apply(received.apply(operationsOf(changeSet)))
      const changed = new Set([...changeSet.sets, ...changeSet.deletes].map(({ path }) => serviceOf(path)))
      for (const { service } of changeSet.triggers) {
        expect(changed, `${service} has a trigger, although nothing is told of it`).toContain(service)
      }
    },
    compare(contents) {
      const expected = naiveNodeView(contents, nodeName)
      const extras = naiveExtras(contents, nodeName)
      const toldExtras = [...told.items.keys()].filter((key) => !/^[12] /.test(key))
      expect(toldExtras.sort()).toEqual(extras.sort())
      const toldViews = [...told.items].filter(([key]) => /^[12] /.test(key))
      expect(new Map(toldViews.sort())).toEqual(new Map([...expected].sort()))
      expect(held(state)).toEqual(asHeld(expected))
      expect(state.node).toEqual(contents.nodes.get(nodeName))
      expect([...state.serviceCidrs.keys()].sort()).toEqual([...contents.serviceCidrs.keys()].sort())
    },
  }
}

/** A node in the process of the store: no paths, no bytes. */
function localWatcher(view: View, nodeName: string): Watcher<NodeChange> {
  const told = new ToldNode()
  const state = new NodeState(nodeName)
  return {
    watch: view.watchNode({ nodeName }),
    apply(change) {
      const { services, node, serviceCidrs } = state.apply(told.changeSet(change))
      const isEmpty = services.size === 0 && !node && !serviceCidrs
      expect(isEmpty && !change.isWhole, 'an empty change set was sent').toBe(false)
      for (const [path, { after }] of services) expect(state.services.get(path)).toBe(after)
    },
    compare(contents) {
      expect(held(state)).toEqual(asHeld(naiveNodeView(contents, nodeName)))
      expect(state.node).toEqual(contents.nodes.get(nodeName))
      expect([...state.serviceCidrs.keys()].sort()).toEqual([...contents.serviceCidrs.keys()].sort())
    },
  }
}

const bytesOf = (schema: Parameters<typeof toBinary>[0], message: unknown) =>
  Buffer.from(toBinary(schema, message as never)).toString('hex')

/** A node's state, and what it should be: services with their endpoints in the order of the paths. */
const held = (state: NodeState) =>
  new Map(
    [...state.services]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, { service, endpoints }]) => [
        path,
        [bytesOf(localv1.ServiceSchema, service), ...endpoints.map((one) => bytesOf(localv1.EndpointSchema, one))],
      ]),
  )

function asHeld(expected: ReadonlyMap<string, string>): Map<string, string[]> {
  const services = new Map<string, string[]>()
  for (const [key, bytes] of [...expected].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const path = key.slice(2)
    if (key.startsWith(`${localv1.Set.SERVICES} `)) services.set(path, [bytes])
    else services.get(path.split('/').slice(0, 2).join('/'))?.push(bytes)
  }
  return services
}

/** A relay: a watcher of the whole cluster, whose own store must hold what the upstream holds. */
function relayWatcher(view: View): Watcher<ChangeSet> & { readonly store: Store } {
  const told = new Told()
  const store = new Store()
  const { log, lines } = recordingLog()
  const state = new RelayedState(new Skips(log))
  const watch = new ClusterItems(view).watch({ extraSets: [localv1.Set.GLOBAL_SERVICE_CIDRS] })
  return {
    store,
    watch,
    apply(changeSet) {
      told.apply(changeSet)
      store.update((tx) => {
        state.apply(operationsOf(changeSet), tx)
        tx.setSynced('services', 'endpoints', 'nodes')
      })
      expect(lines).toEqual([])
    },
    compare(contents) {
      expect(comparable(contentsOf(store))).toEqual(comparable(contents))
      for (const [key, bytes] of told.items) {
        if (!key.startsWith(`${localv1.Set.GLOBAL_ENDPOINT_INFOS} `)) continue
        const { hash } = fromBinary(globalv1.EndpointInfoSchema, Buffer.from(bytes, 'hex'))
        expect(key.endsWith(`|${hash.toString(16)}`)).toBe(true)
      }
    },
  }
}

/** As a client receives them. */
const operationsOf = ({ reset, sets, deletes, triggers }: ChangeSet): Operations => ({
  reset,
  sets: [...sets].map((item) => ({ $typeName: 'localv1.Value', ref: ref(item), bytes: item.encode() })),
  deletes: [...deletes].map(ref),
  triggers: triggers.map(({ service, unixMs }) => ({ $typeName: 'localv1.Trigger', service, unixMs: BigInt(unixMs) })),
  timeline: undefined,
})

const ref = ({ set, path }: { set: localv1.Set; path: string }) => ({ $typeName: 'localv1.Ref' as const, set, path })

/** Without what a relay cannot know: the order of endpoints, endpoints that say the same twice, and empty slices. */
const comparable = ({ entries, nodes, serviceCidrs }: Contents) => ({
  services: entries
    .map(({ path, service, sources }) => ({
      path,
      service,
      sources: [...sources]
        .filter(([, endpoints]) => endpoints.length > 0)
        .map(([name, endpoints]): [string, EndpointRecord[]] => [name, distinct(endpoints)])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    }))
    .filter(({ service, sources }) => service || sources.length > 0)
    .sort((a, b) => (a.path < b.path ? -1 : 1)),
  nodes: new Map([...nodes].sort()),
  serviceCidrs: new Map([...serviceCidrs].sort()),
})

const distinct = (endpoints: readonly EndpointRecord[]): EndpointRecord[] =>
  [...new Map(endpoints.map((endpoint) => [JSON.stringify(endpoint), endpoint])).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, endpoint]) => endpoint)

// biome-ignore lint/suspicious/noExplicitAny: what each is told is its own matter
function newWatchers(store: Store, turns?: Turns): Watcher<any>[] {
  const view = new View(store, turns)
  const relay = relayWatcher(view)
  const items = new NodeItems(view)
  const ofRelay = nodeWatcher(new NodeItems(new View(relay.store, turns)), 'node-a')
  return [
    ...nodeNames.map((name) => nodeWatcher(items, name)),
    nodeWatcher(items, 'unknown'),
    localWatcher(view, 'node-a'),
    relay,
    // It hears of the relay's revisions and is compared with the relay's contents.
    { ...ofRelay, compare: () => ofRelay.compare(contentsOf(relay.store)) },
  ]
}

const everybody = [0, 1, 2, 3, 4, 5, 6, 7]

const aStep = fc.record({
  writes: fc.array(aWrite, { minLength: 1, maxLength: 4 }),
  /** Which watchers ask after this update. */
  askers: fc.subarray(everybody),
})

function update(store: Store, writes: readonly Write[]): void {
  store.update((tx) => {
    for (const write of writes) write(tx)
  })
}

describe('watchers know exactly what the naive view says', () => {
  test.each([
    { name: 'who are never lost', options: {}, steps: 25 },
    { name: 'who are lost when they lag', options: { maxSupersededEndpoints: 160 }, steps: 25 },
  ])('$name', ({ options, steps }) => {
    fc.assert(
      fc.property(fc.array(aStep, { minLength: 1, maxLength: steps }), (steps) => {
        const store = syncedStore(options)
        const watchers = newWatchers(store)
        const ask = (index: number) => {
          const { watch, apply, compare } = watchers[index] as Watcher
          const changeSet = watch.poll()
          if (changeSet) apply(changeSet)
          compare(contentsOf(store))
        }
        for (const { writes, askers } of steps) {
          update(store, writes)
          for (const asker of askers) ask(asker)
        }
        for (const index of everybody) ask(index)
      }),
      { numRuns: 120 },
    )
  })

  test('even while the store moves on before a change set is worked out', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aStep, { minLength: 2, maxLength: 12 }), async (steps) => {
        const store = syncedStore()
        const history = new Map<number, Contents>()
        const remember = () => history.set(store.revision, contentsOf(store))
        remember()
        // A turn that is over at once: others come in between at every step.
        const watchers = newWatchers(store, new Turns(0)).slice(0, nodeNames.length)
        const asked = new Set<number>()
        const answers: Promise<unknown>[] = []
        const ask = async (index: number) => {
          if (asked.has(index)) return
          asked.add(index)
          const { watch, apply, compare } = watchers[index] as Watcher
          const changeSet = await watch.next()
          asked.delete(index)
          apply(changeSet)
          compare(history.get(changeSet.revision) as Contents)
        }
        for (const { writes, askers } of steps) {
          update(store, writes)
          remember()
          for (const asker of askers) {
            if (asker < watchers.length) answers.push(ask(asker).catch((error) => error))
          }
          await nextLoop()
        }
        const enough = new Error('enough')
        for (const { watch } of watchers) watch.close(enough)
        for (const failure of await Promise.all(answers)) if (failure && failure !== enough) throw failure
      }),
      { numRuns: 500 },
    )
  })
})

/** An edit of one endpoint of a large service. Most keep it free of duplicates, so that it is worked out from what was there before. */
const anEdit = fc.record({
  index: fc.nat(299),
  what: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('remove', 'restore', 'address', 'node', 'not ready', 'no port', 'swap') },
    { weight: 3, arbitrary: fc.constantFrom('other hints', 'no hints') },
    { weight: 1, arbitrary: fc.constantFrom('address of another', 'pod of another') },
  ),
})

type Edit = typeof anEdit extends fc.Arbitrary<infer T> ? T : never

type Hinted = 'nowhere' | 'nodes' | 'zones'

/** A few are on nodes that are watched, and one zone has a single endpoint. */
function ordinary(index: number, hinted: Hinted): EndpointRecord {
  const node = nodeNames[index % 40] ?? `node-${index}`
  const zone = index === 7 ? 'zone-c' : index % 2 === 0 ? 'zone-a' : 'zone-b'
  const hints = hinted === 'nodes' ? { nodes: [node] } : hinted === 'zones' ? { zones: [zone] } : {}
  return endpoint(`10.1.${index >> 8}.${index & 255}`, { podName: `pod-${index}`, node, ...hints })
}

function edited(
  endpoints: readonly EndpointRecord[],
  { index, what }: Edit,
  number: number,
  hinted: Hinted,
): EndpointRecord[] {
  const at = index % endpoints.length
  const [known, other] = [endpoints[at], endpoints[(at + 7) % endpoints.length]] as [EndpointRecord, EndpointRecord]
  const isThere = endpoints.some(({ podName }) => podName === `pod-${index}`)
  if (what === 'remove') return endpoints.toSpliced(at, 1)
  if (what === 'restore') return isThere ? [...endpoints] : endpoints.toSpliced(at, 0, ordinary(index, hinted))
  if (what === 'address') return endpoints.with(at, { ...known, v4: [`10.2.0.${number}`] })
  if (what === 'node') return endpoints.with(at, { ...known, node: nodeNames[number % 4] as string })
  if (what === 'not ready') return endpoints.with(at, endpoint(known.v4[0] as string, { ...known, ready: false }))
  if (what === 'no hints') return endpoints.with(at, { ...known, hints: undefined })
  if (what === 'other hints') return endpoints.with(at, { ...known, hints: ordinary(number % 8, hinted).hints })
  if (what === 'no port') return endpoints.with(at, { ...known, ports: [] })
  if (what === 'swap') return endpoints.with(at, other).with((at + 7) % endpoints.length, known)
  return endpoints.with(
    at,
    what === 'pod of another' ? { ...known, podName: other.podName } : { ...known, v4: other.v4 },
  )
}

test('watchers of a service of hundreds of endpoints know what a new watcher is told', { timeout: 300_000 }, () => {
  const aLargeStep = fc.record({ edits: fc.array(anEdit, { maxLength: 3 }), askers: fc.subarray(nodeNames) })
  const aHinted = fc.constantFrom<Hinted>('nowhere', 'nodes', 'zones')
  const zoneNames = ['zone-a', 'zone-b', 'zone-c']
  fc.assert(
    fc.property(
      fc.boolean(),
      aHinted,
      fc.array(aLargeStep, { minLength: 2, maxLength: 12 }),
      (isLocal, hinted, steps) => {
        const store = syncedStore()
        const items = new NodeItems(new View(store))
        const watchers = nodeNames.map((nodeName) => ({
          nodeName,
          watch: items.watch({ nodeName }),
          told: new Told(),
        }))
        let endpoints = Array.from({ length: 300 }, (_, index) => ordinary(index, hinted))
        store.update((tx) => {
          tx.setService(service('a', { internalTrafficToLocal: isLocal }))
          for (const [index, name] of nodeNames.entries()) tx.setNode(node(name, zoneNames[index % 3]))
        })
        let number = 0
        const all = { edits: [], askers: nodeNames }
        for (const { edits, askers } of [all, ...steps, all]) {
          for (const edit of edits) endpoints = edited(endpoints, edit, ++number, hinted)
          store.update((tx) => {
            for (const slice of [0, 1, 2]) {
              const part = endpoints.slice(slice * 100, slice === 2 ? undefined : slice * 100 + 100)
              tx.setEndpoints({ namespace: 'default', name: `s${slice}`, service: 'a', endpoints: part })
            }
          })
          for (const { nodeName, watch, told } of watchers) {
            const changeSet = askers.includes(nodeName) && watch.poll()
            if (changeSet) told.apply(changeSet)
            if (!askers.includes(nodeName)) continue
            const fresh = new Told()
            fresh.apply(new NodeItems(new View(store)).watch({ nodeName }).poll() as ChangeSet)
            expect(new Map([...told.items].sort())).toEqual(new Map([...fresh.items].sort()))
          }
        }
      },
    ),
    { numRuns: 60, endOnFailure: true },
  )
})

test('the messages of items are what they encode', () => {
  fc.assert(
    fc.property(someEndpoints, aService, (endpoints, service) => {
      const store = syncedStore()
      store.update((tx) => {
        tx.setService(service)
        tx.setEndpoints({ namespace: 'default', name: 's1', service: service.name, endpoints })
      })
      for (const item of new NodeItems(new View(store)).watch({ nodeName: 'node-a' }).poll()?.sets ?? []) {
        const schema = item.set === localv1.Set.SERVICES ? localv1.ServiceSchema : localv1.EndpointSchema
        expect(fromBinary<typeof schema>(schema, item.encode())).toEqual(item.message)
      }
    }),
    { numRuns: 200 },
  )
})

test('nothing is told before the store is synced', () => {
  const store = new Store()
  store.update((tx) => tx.setService(service('a')))
  const view = new View(store)
  expect(view.watchNode({ nodeName: 'node-a' }).poll()).toBeUndefined()
  expect(new ClusterItems(view).watch().poll()).toBeUndefined()
})
