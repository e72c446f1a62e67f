import { silentLog } from '@kpng/api'
import { expect, it } from 'vitest'
import { type Bookmark, Store } from '../../store/index.js'
import { sleep, until } from '../../testing/until.js'
import { Skips } from '../skips.js'
import { type WatchKubeOptions, watchKube } from './source.js'
import { api, cidrs, nodes, proxyName, servedOn, service, services, slice, slices, watch } from './testing/cluster.js'
import { sendStatus } from './testing/fake-api.js'
import { recordingLog } from './testing/recording.js'
import { connectTo } from './testing/reflecting.js'

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
  const { store, events, log } = await watch(server)
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
  expect(events).toHaveLength(4)
  expect(store.revision).toBe(4)
  expect(log.lines.filter(({ level }) => ['warn', 'error'].includes(level))).toEqual([])
})

it('follows changes, and writes nothing where nothing changed that kpng uses', async () => {
  const server = await api()
  const { store, events } = await watch(server)
  await until(() => store.synced)
  server.set(services, service('web'))
  server.set(slices, slice('web-1', 'web', ['10.1.0.1']))
  await until(() => store.entry('default/web')?.sources.size === 1 && store.entry('default/web')?.service !== undefined)
  const { revision } = store
  for (let n = 0; n < 20; n++) server.set(slices, { ...slice('web-1', 'web', ['10.1.0.1']), note: n })
  await until(() => events.length === 22)
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
  server.set(services, service('web'))
  server.set(slices, slice('web-1', 'web', ['10.1.0.1']))
  const { store } = await watch(server)
  await until(() => store.entry('default/web')?.sources.size === 1 && store.entry('default/web')?.service !== undefined)
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
  expect(asked[services]?.get('labelSelector')).toBe(`!${proxyName}`)
  expect(asked[services]?.get('fieldSelector')).toBe('spec.clusterIP!=None')
  expect(asked[slices]?.get('labelSelector')).toBe('!service.kubernetes.io/headless')
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

it('as in kube-proxy 1.36, service-proxy-name counts on Services and headless on slices', async () => {
  const server = await api()
  const headless = 'service.kubernetes.io/headless'
  server.set(services, service('labelled-headless', {}, { [headless]: '' }))
  server.set(slices, slice('labelled-headless-1', 'labelled-headless', ['10.1.0.1']))
  server.set(services, service('labelled-slice'))
  server.set(slices, slice('labelled-slice-1', 'labelled-slice', ['10.1.0.2'], { [proxyName]: 'other' }))
  server.set(services, service('headless-slice'))
  server.set(slices, slice('headless-slice-1', 'headless-slice', ['10.1.0.3'], { [headless]: '' }))
  const { store } = await watch(server)
  await until(() => store.synced)
  const slicesOf = (name: string) => store.entry(`default/${name}`)?.sources.size
  expect(store.entry('default/labelled-headless')?.service).toBeDefined()
  expect(slicesOf('labelled-headless')).toBe(1)
  expect(slicesOf('labelled-slice')).toBe(1)
  expect(slicesOf('headless-slice')).toBe(0)
})

it('slices go with their Service, whatever labels they carry', async () => {
  const server = await api()
  const own = { [proxyName]: 'special' }
  server.set(services, service('special', {}, own))
  server.set(slices, slice('hand-made', 'special', ['10.1.0.1']))
  server.set(services, service('usual'))
  server.set(slices, slice('usual-1', 'usual', ['10.1.0.2'], own))
  const served = async (options: Partial<WatchKubeOptions>) => {
    const { store } = await watch(server, options)
    await until(() => store.synced)
    return servedOn('node-1', store)
  }
  expect(await served({ serviceProxyName: 'special' })).toEqual(['special http: 10.1.0.1:8080'])
  expect(await served({})).toEqual(['usual http: 10.1.0.2:8080'])
})

it('a slice port of another protocol is not the Service port of that name (as in kube-proxy)', async () => {
  const server = await api()
  const port = (name: string, number: number, protocol: string) => ({ name, port: number, protocol })
  const withPorts = (ports: object[], object: ReturnType<typeof slice>) => ({ ...object, ports })
  server.set(services, service('web', { ports: [port('http', 80, 'TCP'), port('other', 81, 'TCP')] }))
  server.set(slices, withPorts([port('http', 8080, 'UDP')], slice('web-1', 'web', ['10.1.0.1'])))
  server.set(
    slices,
    withPorts([port('http', 8080, 'UDP'), port('other', 8081, 'TCP')], slice('web-2', 'web', ['10.1.0.2'])),
  )
  server.set(services, service('dns', { ports: [port('dns', 53, 'UDP'), port('dns-tcp', 53, 'TCP')] }))
  server.set(
    slices,
    withPorts([port('dns', 5353, 'UDP'), port('dns-tcp', 5353, 'TCP')], slice('dns-1', 'dns', ['10.1.0.3'])),
  )
  const { store } = await watch(server)
  await until(() => store.synced)
  expect(await servedOn('node-1', store)).toEqual([
    'dns dns-tcp: 10.1.0.3:5353',
    'dns dns: 10.1.0.3:5353',
    'web http: nowhere',
    'web other: 10.1.0.2:8081',
  ])
  // The Service changes its protocol: the same slices serve it.
  server.set(services, service('web', { ports: [port('http', 80, 'UDP')] }))
  await until(() => store.entry('default/web')?.service?.ports.length === 1)
  expect((await servedOn('node-1', store)).filter((line) => line.startsWith('web'))).toEqual([
    'web http: 10.1.0.1:8080',
    'web http: 10.1.0.2:8080',
  ])
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

it.each(['selects', 'cannot select'])(
  'a node agent has its own Node alone (checklist 7); the server %s by name',
  async (how) => {
    const server = await api()
    for (const name of ['node-1', 'node-2']) server.set(nodes, { kind: 'Node', metadata: { name } })
    server.intercept = ({ path, query }, response) => {
      if (how === 'selects' || path !== nodes || !query.has('fieldSelector')) return false
      sendStatus(response, 400, 'field label not supported: metadata.name')
      return true
    }
    const { store } = await watch(server, { nodeName: 'node-1' })
    await until(() => store.synced)
    server.set(nodes, { kind: 'Node', metadata: { name: 'node-2', labels: { 'topology.kubernetes.io/zone': 'b' } } })
    server.set(nodes, { kind: 'Node', metadata: { name: 'node-1', labels: { 'topology.kubernetes.io/zone': 'a' } } })
    await until(() => store.node('node-1')?.topology?.zone === 'a')
    expect([...store.nodes.keys()]).toEqual(['node-1'])
    const asked = server.requests.find(({ path }) => path === nodes)
    expect(asked?.query.get('fieldSelector')).toBe('metadata.name=node-1')
  },
)

it('is synced also where there is no Node of its name', async () => {
  const server = await api()
  const { store } = await watch(server, { nodeName: 'a,b=c' })
  await until(() => store.synced)
  const asked = server.requests.find(({ path }) => path === nodes)
  expect(asked?.query.get('fieldSelector')).toBe('metadata.name=a\\,b\\=c')
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

it('says once that something came without a name', async () => {
  const server = await api()
  const skips = new Skips(silentLog)
  const { store } = await watch(server, { skips })
  await until(() => store.synced)
  for (const type of ['ADDED', 'MODIFIED', 'DELETED']) {
    server.sendToWatchers({ type, object: { kind: 'Service', metadata: { namespace: 'default' } } })
  }
  server.set(services, service('web'))
  await until(() => store.entry('default/web') !== undefined)
  // Each kind is watched on its own, and got them.
  await until(() => skips.total === 4)
  expect(skips.current).toBe(4)
})

it('an object without a namespace does not take the place of one in "default" (nor a Node with one that of a Node)', async () => {
  const server = await api()
  server.set(services, service('web', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] }))
  server.set(nodes, { kind: 'Node', metadata: { name: 'node-1' } })
  const { store, log } = await watch(server)
  await until(() => store.synced)
  const { namespace: _, ...metadata } = service('web').metadata
  server.set(services, { ...service('web', { clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2'] }), metadata })
  server.set(nodes, { kind: 'Node', metadata: { namespace: 'default', name: 'node-1' } })
  const skipped = () => log.lines.filter(({ message }) => message === 'Skipped').map(({ fields }) => fields)
  await until(() => skipped().length === 2)
  const byObject = (a: { object?: unknown }, b: { object?: unknown }) => (String(a.object) < String(b.object) ? 1 : -1)
  expect(skipped().sort(byObject)).toEqual([
    { object: 'Service web', reason: 'metadata.namespace is missing. It is left out.' },
    { object: 'Node default/node-1', reason: 'metadata.namespace is "default", and a Node has none. It is left out.' },
  ])
  const unchanged = () => {
    expect(store.entry('default/web')?.service?.ips?.clusterIps?.v4).toEqual(['10.0.0.1'])
    expect(store.node('node-1')).toBeDefined()
  }
  unchanged()
  server.remove(services, 'web')
  server.remove(nodes, 'node-1', 'default')
  server.set(services, service('last'))
  server.set(nodes, { kind: 'Node', metadata: { name: 'last' } })
  await until(() => store.entry('default/last') !== undefined && store.node('last') !== undefined)
  unchanged()
})

it('counts every event by resource and type', async () => {
  const server = await api()
  server.set(services, service('web'))
  const { store, events } = await watch(server)
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
  const store = new Store()
  const start = store.bookmark()
  await watch(server, { store })
  await until(() => store.synced)
  const triggers = (since: Bookmark) =>
    [...(store.changesSince(since)?.services.values() ?? [])].map(({ triggerUnixMs }) => triggerUnixMs)
  expect(triggers(start)).toEqual([undefined])
  const { revision } = store
  const synced = store.bookmark()
  const now = Date.now() + 1_000
  server.set(slices, at(now, '10.1.0.2'))
  await until(() => store.revision > revision)
  expect(triggers(synced)).toEqual([now])
})

it('refuses a proxy name that no label can have', async () => {
  const server = await api()
  const connection = await connectTo(server.url)
  const options = { store: new Store(), log: recordingLog(), connection, signal: AbortSignal.abort() }
  await expect(watchKube({ ...options, serviceProxyName: 'a b' })).rejects.toMatchObject({ code: 'usage' })
})
