import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LiveChanges, type LiveNode, type LiveSnapshot, type LiveSync, silentLog } from '@kpng/api'
import { changeSetsOverGrpc } from '@kpng/client'
import { noApiCounts, type Server, serveApi } from '@kpng/core/sinks/api'
import { ChangeLog, type EndpointRecord, Store } from '@kpng/core/store'
import { serviceFactsOf, View } from '@kpng/core/view'
import { type AgentSocket, askAgent, type CoreApi, coreApi, serveOnSocket } from '@kpng/node/agent-api'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { endpoint, node, service } from '../core/testing/objects.js'
import { readEvents } from '../node/testing/event-reader.js'
import { followAsCore } from './explain.js'
import { liveNodes } from './sinks/core-agent.js'

// The live page of a core, with a store, a gRPC server and nodes that watch.

let folder: string
let socket: AgentSocket | undefined
let api: CoreApi | undefined
let server: Server | undefined
const ends: (() => void)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-core-live-'))
})
afterEach(async () => {
  for (const end of ends.splice(0)) end()
  api?.close()
  await server?.close(0)
  await socket?.close()
  await rm(folder, { recursive: true, force: true })
})

async function core() {
  const store = new Store()
  store.update((transaction) => {
    for (const name of ['node-a', 'node-b']) transaction.setNode(node(name))
    transaction.setService(service('web', { internalTrafficToLocal: true }))
    setEndpoints(transaction, 'node-b')
    transaction.setSynced('services', 'endpoints', 'nodes')
  })
  const view = new View(store)
  const counters = noApiCounts()
  const address = `unix://${folder}/api.sock`
  server = await serveApi({ store, view, counters, log: silentLog, listen: address })
  const history = new ChangeLog(store)
  /** The Services whose facts were asked for. */
  const asked: string[] = []
  api = coreApi({
    ...{ version: '1.2.3', nodeName: 'here', state: store, history },
    watchers: () => counters.watchers,
    endpoints: () => [],
    counts: () => ({ services: store.entries().length, endpoints: 1 }),
    viewOf: () => Promise.reject(new Error('not used')),
    explain: () => Promise.reject(new Error('not used')),
    knownNodes: () => [],
    nodes: () => liveNodes(store, counters),
    follow: await followAsCore(store, view, silentLog),
    factsOf: (name) => {
      const facts = serviceFactsOf(store, name)
      const count = (path: string, used: number) => {
        asked.push(path)
        return facts(path, used)
      }
      return Object.assign(count, { onChange: facts.onChange })
    },
  })
  socket = await serveOnSocket(join(folder, 'core.sock'), api.handler)
  const { path: socketPath } = socket
  const read = (path: string) => {
    const { events, end, state } = readEvents<LiveSnapshot & LiveChanges>({ socketPath, path })
    ends.push(end)
    return { events, state }
  }
  /** Watches as a node does; `take` takes the next change set over. */
  const watch = (nodeName: string) => {
    const stop = new AbortController()
    ends.push(() => stop.abort())
    const changeSets = changeSetsOverGrpc({ api: address, log: silentLog })({ nodeName }, stop.signal)
    const iterator = changeSets[Symbol.asyncIterator]()
    return { take: () => iterator.next() }
  }
  return { store, read, watch, socketPath, asked }
}

type Transaction = Parameters<Parameters<Store['update']>[0]>[0]

const setEndpoints = (transaction: Transaction, ...nodes: readonly string[]) =>
  transaction.setEndpoints({
    ...{ namespace: 'default', name: 'web-1', service: 'web' },
    endpoints: nodes.map((name, index) => endpoint(`10.0.0.${index + 1}`, { node: name })),
  })

const limit = { timeout: 90_000, interval: 20 }

test('the cluster: all Services, what happens to them, and the nodes', async () => {
  const { store, read, watch } = await core()
  const { events } = read('/v1/stream')
  await expect.poll(() => events.length, limit).toBeGreaterThan(0)
  expect(events[0]?.data).toMatchObject({
    status: { role: 'core', core: { synced: true } },
    nodes: [{ watchers: 0 }, {}],
  })
  const rows = () =>
    events.flatMap(({ data }) => (data.services && !Array.isArray(data.services) ? [data.services] : []))
  await expect
    .poll(() => events[0]?.data.services[0] ?? rows().find((row) => row['default/web'])?.['default/web'], limit)
    .toMatchObject({ name: 'web', verdict: 'serving', total: 1, endpoints: 1 })

  const nodeNow = (name: string): LiveNode | undefined =>
    events.reduce<LiveNode | undefined>((known, { data }) => {
      const nodes = data.nodes as LiveSnapshot['nodes'] & LiveChanges['nodes']
      return (Array.isArray(nodes) ? nodes.find((each) => each.name === name) : nodes?.[name]) ?? known
    }, undefined)
  const diligent = watch('node-a')
  const lazy = watch('node-b')
  await Promise.all([diligent.take(), lazy.take()])
  void diligent.take()
  await expect.poll(() => nodeNow('node-a'), limit).toMatchObject({ watchers: 1, revision: store.revision })
  store.update((transaction) => setEndpoints(transaction, 'node-b', 'node-a'))
  await expect
    .poll(() => events.flatMap(({ data }) => data.syncs ?? []), limit)
    .toMatchObject([{ number: store.revision, sentence: '10.0.0.2 of default/web is used now' }])
  await expect.poll(() => nodeNow('node-b')?.behindSince, limit).toBeTruthy()
  expect(nodeNow('node-b')).toMatchObject({ watchers: 1 })
  expect(nodeNow('node-b')?.revision).toBeLessThan(store.revision)
  // It takes over what it was sent. What came meanwhile does not concern it.
  void lazy.take()
  await expect.poll(() => nodeNow('node-b'), limit).toEqual({ name: 'node-b', watchers: 1, revision: store.revision })
})

test('a change of several Services says for each of them what happened', async () => {
  const { store, socketPath } = await core()
  store.update((transaction) => {
    setEndpoints(transaction, 'node-b', 'node-a')
    transaction.setService(service('api', { ips: { clusterIps: { v4: ['10.96.0.11'] } } }))
  })
  await expect
    .poll(() => askAgent(socketPath, '/v1/changes'), limit)
    .toMatchObject({ changes: [{ sentence: '2 Services were changed' }] })
  const { changes } = await askAgent<{ changes: readonly LiveSync[] }>(socketPath, '/v1/changes')
  expect(new Map(changes[0]?.services.map((each) => [each.service, each.sentence]))).toEqual(
    new Map([
      ['default/web', '10.0.0.2 of default/web is used now'],
      ['default/api', 'default/api is new, with 0 endpoints'],
    ]),
  )
})

test('a node as that node sees it', async () => {
  const { store, read } = await core()
  const [onA, onB] = [read('/v1/stream?node=node-a'), read('/v1/stream?node=node-b')]
  const rowOf = ({ events }: typeof onA) =>
    events
      .flatMap(({ data }) => (Array.isArray(data.services) ? data.services : [data.services?.['default/web']]))
      .filter((row) => row)
      .at(-1)
  await expect.poll(() => rowOf(onA), limit).toMatchObject({ verdict: 'dropped' })
  await expect.poll(() => rowOf(onB), limit).toMatchObject({ verdict: 'serving', endpoints: 1 })
  expect(onB.events[0]?.data.status.core).toMatchObject({ asNode: 'node-b' })
  store.update((transaction) => setEndpoints(transaction, 'node-a'))
  await expect.poll(() => rowOf(onA), limit).toMatchObject({ verdict: 'serving' })
  await expect.poll(() => rowOf(onB), limit).toMatchObject({ verdict: 'dropped' })
})

test('endpoints that come and go without being used: sent at once, at the cost of their Service', async () => {
  const { store, read, asked } = await core()
  const addWeb = (name: string, ...endpoints: readonly EndpointRecord[]) =>
    store.update((transaction) => {
      transaction.setService(service(name, { ips: { clusterIps: { v4: [`10.96.1.${name.length}`] } } }))
      transaction.setEndpoints({ ...{ namespace: 'default', name: `${name}-1`, service: name }, endpoints })
    })
  for (let length = 4; length < 30; length++) addWeb('s'.repeat(length), endpoint('10.0.1.1'))
  const used = endpoint('10.0.0.9')
  const leaving = ['10.0.0.7', '10.0.0.8'].map((ip) => endpoint(ip, { ready: false, serving: true, terminating: true }))
  addWeb('api', used, ...leaving)
  const [ofCluster, ofNode] = [read('/v1/stream'), read('/v1/stream?node=node-a')]
  const rowOf = ({ events }: typeof ofNode) =>
    events
      .flatMap(({ data }) => (Array.isArray(data.services) ? data.services : Object.values(data.services ?? {})))
      .filter((row) => row?.name === 'api')
      .at(-1)
  await expect.poll(() => rowOf(ofNode), limit).toMatchObject({ endpoints: 1, total: 3 })
  await expect.poll(() => rowOf(ofCluster), limit).toMatchObject({ total: 3 })
  asked.length = 0
  addWeb('api', used)
  await expect.poll(() => rowOf(ofNode), limit).toMatchObject({ endpoints: 1, total: 1 })
  await expect.poll(() => rowOf(ofCluster), limit).toMatchObject({ total: 1 })
  expect(new Set(asked)).toEqual(new Set(['default/api']))
})

test('a node that does not exist, changes and connections', async () => {
  const { store, socketPath } = await core()
  await expect(askAgent(socketPath, '/v1/stream?node=node-x')).rejects.toThrow('The cluster has no node "node-x".')
  store.update((transaction) => setEndpoints(transaction))
  await expect
    .poll(() => askAgent(socketPath, '/v1/changes'), limit)
    .toMatchObject({
      changes: [
        {
          number: store.revision,
          services: [{ service: 'default/web', before: 1, after: 0 }],
          sentence: '10.0.0.1 of default/web is gone',
        },
      ],
    })
  expect(await askAgent(socketPath, '/v1/connections')).toMatchObject({
    total: 0,
    why: expect.stringContaining('core'),
  })
})
