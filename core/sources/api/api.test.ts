import { create, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1, silentLog } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { frame, listen } from '../../sinks/api/grpc/index.js'
import { serveApi } from '../../sinks/api/index.js'
import { Store } from '../../store/index.js'
import { endpoint, node, service, syncedStore } from '../../testing/objects.js'
import { recordingLog, until } from '../../testing/until.js'
import { relayApi } from './index.js'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function serve(store: Store, address = 'tcp://127.0.0.1:0') {
  const server = await serveApi({ store, log: silentLog, listen: address })
  cleanUps.push(() => server.close(50))
  return server
}

function relay(address: string, log = silentLog): Store {
  const store = new Store()
  const stop = new AbortController()
  const done = relayApi({ store, log, signal: stop.signal, api: address, errorDelayMs: 20 })
  cleanUps.push(async () => {
    stop.abort()
    await done
  })
  return store
}

/** Everything a store holds, in a comparable form. */
const contents = (store: Store) => ({
  services: [...store.entries()]
    .map(({ path, service, sources }) => ({
      path,
      service,
      sources: [...sources]
        .map(([name, endpoints]) => [
          name,
          [...endpoints].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
        ])
        .sort(),
    }))
    .sort((a, b) => (a.path < b.path ? -1 : 1)),
  nodes: [...store.nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
  cidrs: [...store.serviceCidrs.values()],
})

const upstreamStore = () => {
  const store = syncedStore()
  store.update((tx) => {
    tx.setNode(node('node-a', 'zone-a'))
    tx.setServiceCidr(create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16'] }))
    tx.setService(service('a', { sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 10 } } }))
    tx.setEndpoints({
      namespace: 'default',
      name: 'a-v4',
      service: 'a',
      endpoints: [
        endpoint('10.0.0.1', { podName: 'p', node: 'node-a', zone: 'zone-a', zones: ['zone-a'], nodes: ['node-a'] }),
        endpoint('10.0.0.2', { ready: false, serving: true, terminating: true }),
        endpoint('10.0.0.3', { ready: false, serving: false }),
        endpoint('10.0.0.4', { ports: [{ name: 'http', port: 8080, protocol: localv1.Protocol.UDP }] }),
      ],
    })
    tx.setEndpoints({
      namespace: 'default',
      name: 'a-v6',
      service: 'a',
      endpoints: [endpoint('fd00::1', { podName: 'p' })],
    })
  })
  return store
}

describe('a relay', () => {
  test('has exactly what its upstream has, and follows it', async () => {
    const upstream = upstreamStore()
    const store = relay((await serve(upstream)).address)
    await until('the first state', () => store.synced)
    expect(contents(store)).toEqual(contents(upstream))

    upstream.update((tx) => {
      tx.setService(service('b'))
      tx.deleteEndpoints('default', 'a-v6')
      tx.setEndpoints({ namespace: 'default', name: 'a-v4', service: 'a', endpoints: [endpoint('10.0.0.9')] }, 4321)
      tx.deleteNode('node-a')
      tx.deleteServiceCidr('kubernetes')
    })
    const before = store.revision
    const bookmark = store.bookmark()
    await until('the change', () => store.revision > before)
    expect(contents(store)).toEqual(contents(upstream))
    expect(store.revision).toBe(before + 1)
    expect(store.changesSince(bookmark)?.services.get('default/a')?.triggerUnixMs).toBe(4321)

    upstream.update((tx) =>
      tx.setEndpoints({ namespace: 'default', name: 'a-v4', service: 'b', endpoints: [endpoint('10.0.0.9')] }),
    )
    await until('the move of a source', () => store.entry('default/b')?.sources.size === 1)
    expect(contents(store)).toEqual(contents(upstream))
  })

  test('keeps the last state while the upstream is away, and then takes only what differs', async () => {
    const upstream = upstreamStore()
    const server = await serve(upstream)
    const store = relay(server.address)
    await until('the first state', () => store.synced)
    const { revision } = store
    const bookmark = store.bookmark()
    await server.close(10)
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(contents(store)).toEqual(contents(upstream))
    upstream.update((tx) => tx.setService(service('b')))
    await serve(upstream, server.address)
    await until('the change', () => store.revision > revision)
    expect(store.revision).toBe(revision + 1)
    expect([...(store.changesSince(bookmark)?.services.keys() ?? [])]).toEqual(['default/b'])
  })

  test('is itself an upstream', async () => {
    const upstream = upstreamStore()
    const first = relay((await serve(upstream)).address)
    const second = relay((await serve(first)).address)
    await until('the state at the end of the chain', () => second.synced)
    expect(contents(second)).toEqual(contents(upstream))
  })
})

test('a Go server is understood: conditions and hashes left out, endpoints sent twice, items that cannot be read skipped', async () => {
  const set = (set: localv1.Set, path: string, bytes: Uint8Array) =>
    frame(
      toBinary(
        localv1.OpItemSchema,
        create(localv1.OpItemSchema, { op: { case: 'set', value: { ref: { set, path }, bytes } } }),
      ),
    )
  const info = toBinary(
    globalv1.EndpointInfoSchema,
    create(globalv1.EndpointInfoSchema, {
      namespace: 'default',
      sourceName: 'a-1',
      serviceName: 'a',
      endpoint: { ips: { v4: ['10.0.0.1'] } },
    }),
  )
  const serviceInfo = toBinary(
    globalv1.ServiceInfoSchema,
    create(globalv1.ServiceInfoSchema, { service: service('a') }),
  )
  const sync = frame(toBinary(localv1.OpItemSchema, create(localv1.OpItemSchema, { op: { case: 'sync', value: {} } })))
  const server = await listen({
    address: 'tcp://127.0.0.1:0',
    log: silentLog,
    handlers: new Map([
      [
        '/globalv1.Sets/Watch',
        async (call) => {
          await call.nextRequest()
          await call.write(set(localv1.Set.GLOBAL_SERVICE_INFOS, 'default|a||', serviceInfo))
          await call.write(set(localv1.Set.GLOBAL_SERVICE_INFOS, 'default|bad||', Buffer.from('ff', 'hex')))
          await call.write(set(localv1.Set.GLOBAL_SERVICE_INFOS, 'no-path', serviceInfo))
          await call.write(set(localv1.Set.GLOBAL_ENDPOINT_INFOS, 'default|a|a-1|1f', info))
          await call.write(set(localv1.Set.GLOBAL_ENDPOINT_INFOS, 'default||a-1|1f', info))
          await call.write(sync)
          await call.nextRequest()
          await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
        },
      ],
    ]),
  })
  cleanUps.push(() => server.close(10))
  const { lines, log } = recordingLog()
  const store = relay(server.address, log)
  await until('the state', () => store.synced)
  expect(contents(store).services).toMatchObject([
    {
      path: 'default/a',
      sources: [['a-1', [{ v4: ['10.0.0.1'], conditions: { ready: true, serving: true, terminating: false } }]]],
    },
  ])
  expect(lines.filter((line) => line.startsWith('W Skipped'))).toHaveLength(2)
})
