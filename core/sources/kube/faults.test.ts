import { setImmediate } from 'node:timers/promises'
import { type Playground, startPlayground } from '@kpng/playground'
import { expect, it, onTestFinished } from 'vitest'
import {
  endpointsFromKubernetes,
  keyFilter,
  nodeFromKubernetes,
  selectionForProxy,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from '../../kubernetes/index.js'
import { type ClusterState, Store } from '../../store/index.js'
import { sleep, until } from '../../testing/until.js'
import { loadConnection } from './client/index.js'
import { watchKube } from './source.js'
import { OrderedStore } from './testing/ordered-store.js'
import { randomChange, seededRandom } from './testing/random-changes.js'
import { recordingLog } from './testing/recording.js'

const changes = 10_000

/** What the API server has, read without HTTP and without a reflector. */
function stateOf({ objects }: Playground): Store {
  const selection = selectionForProxy()
  const kept = { labels: keyFilter(['number']), annotations: keyFilter([]) }
  const fail = (reason: string) => {
    throw new Error(reason)
  }
  const read = <T>(kind: string, map: (object: unknown) => T | undefined): T[] =>
    objects.list(kind).flatMap((object) => map(object) ?? [])
  const state: ClusterState = {
    services: read('Service', (object) =>
      selection.takesService(object) ? serviceFromKubernetes(object, kept, fail) : undefined,
    ),
    endpoints: read('EndpointSlice', (object) =>
      selection.takesSlice(object) ? endpointsFromKubernetes(object, fail, (text) => text) : undefined,
    ),
    nodes: read('Node', (object) => nodeFromKubernetes(object, kept, fail)),
    serviceCidrs: read('ServiceCIDR', (object) => serviceCidrFromKubernetes(object, fail)),
  }
  const store = new Store()
  store.update((transaction) => transaction.replaceAll(state))
  return store
}

/** All that a store holds, in one order. */
function contentOf(store: Store): string {
  const entries = store.entries().map(({ path, service, sources }) => ({
    path,
    service,
    sources: Object.fromEntries([...sources].toSorted(([a], [b]) => a.localeCompare(b))),
  }))
  const byName = (a: { path: string }, b: { path: string }) => a.path.localeCompare(b.path)
  const sorted = <T>(map: ReadonlyMap<string, T>) => [...map].toSorted(([a], [b]) => a.localeCompare(b))
  return JSON.stringify([entries.toSorted(byName), sorted(store.nodes), sorted(store.serviceCidrs)], null, 1)
}

const faultsOf = ({ faults }: Playground, random: () => number): readonly (() => unknown)[] => [
  () => faults.dropWatches(),
  () => faults.endWatches(),
  () => faults.expireVersions(),
  () => {
    faults.expireVersions()
    faults.dropWatches()
  },
  () => faults.expireWatches(),
  () => faults.restart(random() * 40),
  () => faults.delayAnswers(random() * 30),
  () => faults.delayAnswers(0),
  () => faults.failNext(3, { code: 500 }),
  () => faults.failNext(2, { code: 503 }),
  () => faults.failNext(2, { code: 410 }),
  () => faults.failNext(1, { code: 401 }),
  () => faults.failNext(2, { code: 403 }),
  () => faults.expiredWatch(random() < 0.5 ? 'event' : 'status'),
  () => faults.bookmarks(random() < 0.5),
  () => {
    faults.hangWatches()
    faults.hangWatches(false)
  },
]

/** Causes a fault every few milliseconds until it is told to stop. */
async function causeFaults(playground: Playground, random: () => number, signal: AbortSignal): Promise<number> {
  const faults = faultsOf(playground, random)
  let count = 0
  for (; !signal.aborted; count++) {
    await faults[Math.floor(random() * faults.length)]?.()
    await sleep(10 + random() * 60)
  }
  return count
}

it.each([
  ['supported', 1],
  ['refused', 2],
  ['ignored', 3],
] as const)(
  'ends with what the API server has, whatever happens on the way (streaming lists %s)',
  async (streamingLists, seed) => {
    const playground = await startPlayground({
      runPods: false,
      changeLogSize: 400,
      bookmarkIntervalMs: 100,
      streamingLists,
    })
    onTestFinished(() => playground.close())
    const connection = await loadConnection({ kubeconfig: playground.kubeconfigPath, env: {} })
    onTestFinished(() => connection.close())
    const store = new OrderedStore()
    const log = recordingLog()
    const stop = new AbortController()
    const timing = {
      backoff: { minMs: 5, maxMs: 50, resetAfterMs: 200 },
      watchSeconds: [1, 1] as const,
      watchGraceMs: 100,
      initialEventsQuietMs: 200,
      shortWatchMs: 20,
      absentRecheckMs: 50,
    }
    const done = watchKube({
      store,
      log,
      connection,
      signal: stop.signal,
      timing,
      serviceLabels: ['number'],
      nodeLabels: ['number'],
      pageSize: 20,
    })
    onTestFinished(async () => {
      stop.abort()
      await done
    })

    const random = seededRandom(seed)
    const calm = new AbortController()
    const faults = causeFaults(playground, seededRandom(seed + 100), calm.signal)
    for (let number = 0; number < changes; number++) {
      randomChange(playground.objects, random, number)
      if (number % 5 === 0) await setImmediate()
      if (number % 50 === 0) await sleep(15)
    }
    calm.abort()
    expect(await faults).toBeGreaterThan(20)
    playground.faults.clear()

    const expected = contentOf(stateOf(playground))
    const deadline = Date.now() + 90_000
    await until(() => contentOf(store) === expected || Date.now() > deadline)
    expect(contentOf(store)).toBe(expected)
    expect(store.violations).toEqual([])
    expect(store.synced).toBe(true)
    expect(store.seen).toBeGreaterThan(changes / 20)
    expect(log.lines.filter(({ message }) => message === 'Skipped')).toEqual([])
  },
)
