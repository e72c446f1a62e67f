import { expect, it, onTestFinished } from 'vitest'
import { Store } from '../../store/index.js'
import { type WatchKubeOptions, watchKube } from './source.js'
import { type FakeApi, sendStatus } from './testing/fake-api.js'
import { quick, recordingLog, sleep, until } from './testing/recording.js'
import { connectTo, startApi } from './testing/reflecting.js'

const services = '/api/v1/services'
const slices = '/apis/discovery.k8s.io/v1/endpointslices'
const nodes = '/api/v1/nodes'
const cidrs = '/apis/networking.k8s.io/v1/servicecidrs'

const proxyName = 'service.kubernetes.io/service-proxy-name'

const service = (name: string, spec: object = {}, labels: Record<string, string> = {}) => ({
  kind: 'Service',
  metadata: { namespace: 'default', name, labels },
  spec: {
    clusterIP: '10.0.0.1',
    clusterIPs: ['10.0.0.1'],
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    ...spec,
  },
})

const slice = (name: string, of: string, addresses: readonly string[], labels: Record<string, string> = {}) => ({
  kind: 'EndpointSlice',
  metadata: { namespace: 'default', name, labels: { 'kubernetes.io/service-name': of, ...labels } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  endpoints: addresses.map((address) => ({ addresses: [address], nodeName: 'node-1' })),
})

async function api(...without: readonly string[]): Promise<FakeApi> {
  const server = await startApi()
  for (const path of [services, slices, nodes, cidrs]) if (!without.includes(path)) server.collections.add(path)
  return server
}

async function watch(server: FakeApi, options: Partial<WatchKubeOptions> = {}) {
  const connection = await connectTo(server.url)
  const store = new Store()
  const log = recordingLog()
  const stop = new AbortController()
  const counters = { apiEvents: 0, storeRevisions: 0 }
  const done = watchKube({ store, log, connection, signal: stop.signal, timing: quick, counters, ...options })
  onTestFinished(async () => {
    stop.abort()
    await done
  })
  return { store, log, counters }
}

it('reads all kinds into the store', async () => {
  const server = await api()
  server.set(services, service('web'))
  server.set(slices, slice('web-1', 'web', ['10.1.0.1', '10.1.0.2']))
  server.set(nodes, {
    kind: 'Node',
    metadata: { name: 'node-1' },
    status: { addresses: [{ type: 'InternalIP', address: '192.168.0.1' }] },
  })
  server.set(cidrs, { kind: 'ServiceCIDR', metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.0.0.0/24'] } })
  const { store, counters, log } = await watch(server)
  await until(() => store.synced && store.serviceCidrs.size === 1)
  expect(store.entry('default/web')?.service?.ports[0]?.port).toBe(80)
  expect(
    store
      .entry('default/web')
      ?.sources.get('web-1')
      ?.map(({ v4 }) => v4[0]),
  ).toEqual(['10.1.0.1', '10.1.0.2'])
  expect(store.node('node-1')?.addresses).toEqual(['192.168.0.1'])
  expect(store.serviceCidrs.get('kubernetes')?.cidrs).toEqual(['10.0.0.0/24'])
  expect(counters).toEqual({ apiEvents: 4, storeRevisions: 4 })
  expect(log.lines.filter(({ level }) => ['warn', 'error'].includes(level))).toEqual([])
})

it('follows changes, and writes nothing where nothing changed that kpng uses', async () => {
  const server = await api()
  const { store, counters } = await watch(server)
  await until(() => store.synced)
  server.set(services, service('web'))
  server.set(slices, slice('web-1', 'web', ['10.1.0.1']))
  await until(() => store.entry('default/web')?.sources.size === 1 && store.entry('default/web')?.service !== undefined)
  const { revision } = store
  for (let n = 0; n < 20; n++) server.set(slices, { ...slice('web-1', 'web', ['10.1.0.1']), note: n })
  await until(() => counters.apiEvents === 22)
  expect(store.revision).toBe(revision)
  server.remove(slices, 'web-1', 'default')
  server.remove(services, 'web', 'default')
  await until(() => store.entry('default/web') === undefined)
})

it('is synced only when services, slices and nodes have all been read', async () => {
  const server = await api()
  const open = new Set([services, slices])
  server.intercept = ({ path }, response) => {
    if (open.has(path) || path === cidrs) return false
    sendStatus(response, 503, 'not yet')
    return true
  }
  const { store } = await watch(server)
  await until(() => store.awaited.length === 1)
  expect(store.awaited).toEqual(['nodes'])
  await sleep(50)
  expect(store.synced).toBe(false)
  open.add(nodes)
  await until(() => store.synced)
})

it.each(['absent', 'forbidden'])('does not wait for service CIDRs that are %s', async (how) => {
  const server = await api(cidrs)
  server.intercept = ({ path }, response) => {
    if (path !== cidrs || how === 'absent') return false
    sendStatus(response, 403, 'no')
    return true
  }
  const { store } = await watch(server)
  await until(() => store.synced)
})

it('selects on the server: the default proxy takes what has no proxy name and is not headless', async () => {
  const server = await api()
  server.set(services, service('mine'))
  server.set(services, service('theirs', {}, { [proxyName]: 'other' }))
  server.set(services, service('headless', { clusterIP: 'None', clusterIPs: ['None'] }))
  const { store } = await watch(server)
  await until(() => store.synced)
  expect(store.entries().map(({ name }) => name)).toEqual(['mine'])
  const asked = Object.fromEntries(server.requests.map(({ path, query }) => [path, query]))
  expect(asked[services]?.get('labelSelector')).toBe(`!${proxyName},!service.kubernetes.io/headless`)
  expect(asked[services]?.get('fieldSelector')).toBe('spec.clusterIP!=None')
  expect(asked[slices]?.get('labelSelector')).toBe(`!${proxyName},!service.kubernetes.io/headless`)
  expect(asked[nodes]?.has('labelSelector')).toBe(false)
  expect(Object.keys(asked).some((path) => path.endsWith('/servicecidrs'))).toBe(true)
})

it('a specialised proxy takes what carries its name, headless too', async () => {
  const server = await api()
  const own = { [proxyName]: 'special' }
  server.set(services, service('default-one'))
  server.set(services, service('headless', { clusterIP: 'None', clusterIPs: ['None'], externalIPs: ['1.2.3.4'] }, own))
  server.set(slices, slice('headless-1', 'headless', ['10.1.0.1'], { ...own, 'service.kubernetes.io/headless': '' }))
  const { store } = await watch(server, { serviceProxyName: 'special' })
  await until(() => store.synced)
  expect(store.entries().map(({ name }) => name)).toEqual(['headless'])
  expect(store.entry('default/headless')?.sources.size).toBe(1)
  expect(server.requests.find(({ path }) => path === services)?.query.get('labelSelector')).toBe(`${proxyName}=special`)
  // Addresses that it has no Service for are those of the cluster's own proxy: it must not know that they are Services'.
  expect(server.requests.some(({ path }) => path.endsWith('/servicecidrs'))).toBe(false)
})

it('drops headless services itself where the server cannot select by clusterIP (before 1.31)', async () => {
  const server = await api()
  server.intercept = ({ query }, response) => {
    if (!query.has('fieldSelector')) return false
    sendStatus(response, 400, 'field label not supported: spec.clusterIP')
    return true
  }
  server.set(services, service('headless', { clusterIP: 'None', clusterIPs: ['None'] }))
  server.set(services, service('web'))
  const { store } = await watch(server)
  await until(() => store.synced)
  expect(store.entries().map(({ name }) => name)).toEqual(['web'])
})

it('keeps the labels and annotations that were asked for', async () => {
  const server = await api()
  server.set(services, service('web', {}, { app: 'web', team: 'a' }))
  server.set(nodes, { kind: 'Node', metadata: { name: 'n', labels: { 'x/a': '1', y: '2' } } })
  const { store } = await watch(server, { serviceLabels: ['app'], nodeLabels: ['x/*'] })
  await until(() => store.synced)
  expect(store.entry('default/web')?.service?.labels).toEqual({ app: 'web' })
  expect(store.node('n')?.labels).toMatchObject({ 'x/a': '1' })
})

it('loses only the object that makes no sense, says so once, and takes it when it is mended', async () => {
  const server = await api()
  server.set(services, service('web'))
  server.set(slices, { ...slice('bad', 'web', []), addressType: 'IPX' })
  server.set(slices, slice('good', 'web', ['10.1.0.1']))
  const { store, log } = await watch(server)
  await until(() => store.synced)
  expect([...(store.entry('default/web')?.sources.keys() ?? [])]).toEqual(['good'])
  const skipped = () => log.lines.filter(({ message }) => message === 'Skipped')
  expect(skipped()).toHaveLength(1)
  expect(skipped()[0]?.fields).toMatchObject({ object: 'EndpointSlice default/bad' })
  server.set(slices, slice('bad', 'web', ['10.1.0.2']))
  await until(() => store.entry('default/web')?.sources.size === 2)
  server.set(slices, { ...slice('bad', 'web', ['10.1.0.2']), addressType: 'IPX' })
  await until(() => store.entry('default/web')?.sources.size === 1)
  expect(skipped()).toHaveLength(2)
})

it('counts every event by resource and type', async () => {
  const server = await api()
  server.set(services, service('web'))
  const events: string[] = []
  const { store } = await watch(server, { onEvent: (resource, type) => events.push(`${resource} ${type}`) })
  await until(() => store.synced)
  server.set(services, service('web', { ports: [] }))
  server.remove(services, 'web', 'default')
  await until(() => events.length === 3)
  expect(events).toEqual(['services ADDED', 'services MODIFIED', 'services DELETED'])
})

it('hands on when an endpoint change began, unless that was before our start', async () => {
  const server = await api()
  const at = (time: number, address: string) => {
    const changed = slice('web-1', 'web', [address])
    const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date(time).toISOString() }
    return { ...changed, metadata: { ...changed.metadata, annotations } }
  }
  server.set(slices, at(Date.now() - 3_600_000, '10.1.0.1'))
  const { store } = await watch(server)
  await until(() => store.synced)
  const triggers = (since: number) =>
    [...(store.changesSince(since)?.services.values() ?? [])].map(({ triggerUnixMs }) => triggerUnixMs)
  expect(triggers(0)).toEqual([undefined])
  const { revision } = store
  const now = Date.now() + 1_000
  server.set(slices, at(now, '10.1.0.2'))
  await until(() => store.revision > revision)
  expect(triggers(revision)).toEqual([now])
})

it('refuses a proxy name that no label can have', async () => {
  const server = await api()
  const connection = await connectTo(server.url)
  const options = { store: new Store(), log: recordingLog(), connection, signal: AbortSignal.abort() }
  await expect(watchKube({ ...options, serviceProxyName: 'a b' })).rejects.toMatchObject({ code: 'usage' })
})
