import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { create } from '@bufbuild/protobuf'
import { globalv1 } from '@kpng/api'
import type { Changes } from '@kpng/client'
import { type DataplaneOptions, FrontendTable } from '@kpng/dataplane'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { endpointAt, serviceWith, TestView } from '../testing/views.js'
import type { HealthCheckEvent } from './health-check-event.js'
import { HealthCheckNodePorts } from './health-check-node-ports.js'
import { HealthCheckServer } from './health-check-server.js'

let view: TestView
let frontends: FrontendTable
let checks: HealthCheckNodePorts
let health: { healthy: boolean }
let events: HealthCheckEvent[]
let lines: string[]
let interfaces: string[]

function start(options: DataplaneOptions) {
  const recorded = recordingLog()
  lines = recorded.lines
  frontends = new FrontendTable(options)
  checks = new HealthCheckNodePorts({
    health,
    nodeName: 'worker-1',
    log: recorded.log,
    frontends,
    addresses: () => interfaces.map((ip) => ({ ip })),
    onEvent: (event) => events.push(event),
  })
}

beforeEach(() => {
  view = new TestView()
  health = { healthy: true }
  events = []
  interfaces = ['127.0.0.1', '127.0.0.2']
  start({ nodePortAddresses: ['127.0.0.1/32', '::1/128'] })
})
afterEach(() => checks.close())

/** What an agent does after a sync. The machine has the interfaces' addresses. */
function observe(changes: Changes): Promise<void> {
  frontends.apply(view, changes, { families: ['IPv4', 'IPv6'], addresses: interfaces })
  return checks.observe(view, changes)
}

/** A port that nobody uses right now. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const local = (port: number, endpoints = [endpointAt('10.0.0.1', { local: true })], name = 'web') =>
  serviceWith({ name, externalTrafficToLocal: true, healthCheckNodePort: port }, endpoints)
const get = (port: number, host = '127.0.0.1') => fetch(`http://${host}:${port}/anything`)
const refused = (port: number) =>
  get(port).then(
    () => false,
    () => true,
  )

describe('the answer', () => {
  test('is that of kube-proxy, byte by byte', async () => {
    const port = await freePort()
    await observe(view.change({ 'default/web': local(port) }))
    const response = await get(port)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-load-balancing-endpoint-weight')).toBe('1')
    expect(await response.text()).toBe(
      '{\n\t"service": {\n\t\t"namespace": "default",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": 1,\n\t"serviceProxyHealthy": true\n}',
    )
  })

  test.each([
    [
      'two local, one of them by two ports',
      [
        ['10.0.0.1', true],
        ['10.0.0.1', true],
        ['10.0.0.2', true],
      ],
      200,
      2,
    ],
    ['only elsewhere', [['10.0.0.1', false]], 503, 0],
    ['none', [], 503, 0],
  ] as const)('%s', async (_, endpoints, status, weight) => {
    const port = await freePort()
    const service = local(
      port,
      endpoints.map(([ip, isLocal]) => endpointAt(ip, { local: isLocal })),
    )
    await observe(view.change({ 'default/web': service }))
    const response = await get(port)
    expect([response.status, response.headers.get('x-load-balancing-endpoint-weight')]).toEqual([status, `${weight}`])
  })

  test('an endpoint that is only terminating does not count', async () => {
    const port = await freePort()
    const leaving = endpointAt('10.0.0.1', { local: true, conditions: { serving: true, terminating: true } })
    await observe(view.change({ 'default/web': local(port, [leaving]) }))
    expect((await get(port)).status).toBe(503)
  })

  test('a proxy that is not healthy: 503', async () => {
    const port = await freePort()
    await observe(view.change({ 'default/web': local(port) }))
    health.healthy = false
    const response = await get(port)
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ localEndpoints: 1, serviceProxyHealthy: false })
  })
})

describe('ports follow the services', () => {
  test('endpoints change in place, ports move, services go', async () => {
    const [first, second] = [await freePort(), await freePort()]
    await observe(view.change({ 'default/web': local(first) }))
    await observe(view.change({ 'default/web': local(first, []) }))
    expect((await get(first)).status).toBe(503)
    await observe(view.change({ 'default/web': local(second) }))
    expect([await refused(first), (await get(second)).status]).toEqual([true, 200])
    await observe(view.change({ 'default/web': undefined }))
    expect([await refused(second), checks.size]).toEqual([true, 0])
    expect(lines.filter((line) => line.startsWith('2 Opening'))).toHaveLength(2)
  })

  test('a port goes from one service to another in one step', async () => {
    const port = await freePort()
    await observe(view.change({ 'default/b': local(port, undefined, 'b') }))
    await observe(view.change({ 'default/a': local(port, undefined, 'a'), 'default/b': undefined }))
    expect(await (await get(port)).json()).toMatchObject({ service: { name: 'a' } })
    expect(events).toEqual([])
  })

  test('what changes while a port is being opened is not lost', async () => {
    const port = await freePort()
    const opening = observe(view.change({ 'default/web': local(port) }))
    const changed = observe(view.change({ 'default/web': local(port, []) }))
    await Promise.all([opening, changed])
    expect((await get(port)).headers.get('x-load-balancing-endpoint-weight')).toBe('0')
    expect(events).toEqual([])
  })

  test('at first the whole view counts; without externalTrafficPolicy Local there is no port', async () => {
    const port = await freePort()
    view.change({
      'default/web': local(port),
      'default/other': serviceWith({ name: 'other', healthCheckNodePort: await freePort() }),
    })
    await observe(view.change({}, { full: true }))
    expect([(await get(port)).status, checks.size]).toEqual([200, 1])
  })

  test('only on the addresses that nodePortAddresses has', async () => {
    const port = await freePort()
    await observe(view.change({ 'default/web': local(port) }))
    await expect(get(port, '127.0.0.2')).rejects.toThrow()
  })
})

test('a port in use is said once, as log and Event, and opened at a later sync', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  await observe(view.change({ 'default/web': local(port) }))
  await observe(view.change({}))
  expect(events).toEqual([
    {
      reason: 'FailedToStartServiceHealthcheck',
      action: 'Listen',
      namespace: 'default',
      name: 'web',
      note: expect.stringContaining(`failed to start healthcheck "default/web" on port ${port}`),
    },
  ])
  expect(lines.filter((line) => line.startsWith('E'))).toHaveLength(1)
  await new Promise((resolve) => other.close(resolve))
  await observe(view.change({}))
  expect((await get(port)).status).toBe(200)
})

describe('where ports are opened', () => {
  const setNode = (...addresses: string[]) => {
    view.node = create(globalv1.NodeSchema, { name: 'worker-1', addresses })
    return view.change({}, { node: true })
  }
  /** Which of these addresses answer. */
  const answering = async (port: number) => {
    const hosts = ['127.0.0.1', '127.0.0.2', '127.0.0.3']
    const answers = await Promise.allSettled(hosts.map((host) => get(port, host)))
    return hosts.filter((_, index) => answers[index]?.status === 'fulfilled')
  }

  test('on every address if all serve node ports', async () => {
    start({ nodePortAddresses: ['all'] })
    const port = await freePort()
    await observe(view.change({ 'default/web': local(port) }))
    expect(await answering(port)).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3'])
  })

  test('without a Node object on the primary address of the machine, and on that of the Node once it is there', async () => {
    start({ nodePortAddresses: ['primary'] })
    const port = await freePort()
    await observe(view.change({ 'default/web': local(port) }))
    expect(await answering(port)).toEqual(['127.0.0.1'])
    await observe(setNode('127.0.0.2'))
    expect(await answering(port)).toEqual(['127.0.0.2'])
  })

  test("they move with the node's primary address", async () => {
    start({ nodePortAddresses: ['primary'] })
    const port = await freePort()
    view.change({ 'default/web': local(port) })
    await observe(setNode('127.0.0.1'))
    expect(await answering(port)).toEqual(['127.0.0.1'])
    await observe(setNode('127.0.0.2', '127.0.0.1'))
    expect(await answering(port)).toEqual(['127.0.0.2'])
  })

  test('an address that comes later is opened at the next sync, one that goes is closed', async () => {
    start({ nodePortAddresses: ['primary'] })
    const port = await freePort()
    view.change({ 'default/web': local(port) })
    interfaces = []
    await observe(setNode('127.0.0.3'))
    await observe(view.change({}))
    expect(await answering(port)).toEqual([])
    expect(lines.filter((line) => line.includes('is served nowhere'))).toHaveLength(1)
    interfaces = ['127.0.0.3']
    await observe(view.change({}))
    expect(await answering(port)).toEqual(['127.0.0.3'])
    interfaces = []
    await observe(view.change({}))
    expect(await answering(port)).toEqual([])
  })

  test('primary and CIDRs together', async () => {
    start({ nodePortAddresses: ['primary', '127.0.0.2/31'] })
    interfaces = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4']
    const port = await freePort()
    await observe(view.change({ 'default/web': local(port) }))
    expect(await answering(port)).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3'])
  })
})

test('an endpoint in the pod CIDR of this node is local, whatever the source says', async () => {
  const port = await freePort()
  view.node = create(globalv1.NodeSchema, { name: 'worker-1', addresses: ['127.0.0.1'], podCidrs: ['10.0.0.0/24'] })
  await observe(view.change({ 'default/web': local(port, [endpointAt('10.0.0.1'), endpointAt('10.0.1.1')]) }))
  expect((await get(port)).headers.get('x-load-balancing-endpoint-weight')).toBe('1')
})

test('one change looks at one server; another address of the machine, or a port in use, at those that it concerns', async () => {
  const ports = await Promise.all(Array.from({ length: 8 }, freePort))
  const services = Object.fromEntries(
    ports.map((port, index) => [`default/web-${index}`, local(port, [], `web-${index}`)]),
  )
  await observe(view.change(services))
  const listen = vi.spyOn(HealthCheckServer.prototype, 'listen')
  try {
    const looksAfter = async (work: Promise<void>) => {
      listen.mockClear()
      await work
      return listen.mock.calls.length
    }
    const change = () => view.change({ 'default/web-3': local(ports[3] as number, undefined, 'web-3') })
    expect(await looksAfter(observe(change()))).toBe(1)
    interfaces = ['127.0.0.1']
    expect(await looksAfter(observe(change()))).toBe(8)
    listen.mockRejectedValueOnce(new Error('in use'))
    expect(await looksAfter(observe(change()))).toBe(1)
    expect(await looksAfter(observe(view.change({})))).toBe(1)
    expect(await looksAfter(observe(view.change({})))).toBe(0)
  } finally {
    listen.mockRestore()
  }
})
