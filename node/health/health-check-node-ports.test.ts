import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { endpointAt, serviceWith, TestView } from '../testing/views.js'
import type { HealthCheckEvent } from './health-check-event.js'
import { HealthCheckNodePorts } from './health-check-node-ports.js'
import { listenAddresses } from './node-port-listen.js'

let view: TestView
let checks: HealthCheckNodePorts
let health: { healthy: boolean }
let events: HealthCheckEvent[]
let lines: string[]

beforeEach(() => {
  view = new TestView()
  health = { healthy: true }
  events = []
  const recorded = recordingLog()
  lines = recorded.lines
  checks = new HealthCheckNodePorts({
    health,
    nodeName: 'worker-1',
    log: recorded.log,
    nodePortAddresses: ['127.0.0.1/32', '::1/128'],
    interfaceAddresses: () => ['127.0.0.1', '127.0.0.2'],
    onEvent: (event) => events.push(event),
  })
})
afterEach(() => checks.close())

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
    await checks.observe(view, view.change({ 'default/web': local(port) }))
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
    await checks.observe(view, view.change({ 'default/web': service }))
    const response = await get(port)
    expect([response.status, response.headers.get('x-load-balancing-endpoint-weight')]).toEqual([status, `${weight}`])
  })

  test('an endpoint that is only terminating does not count', async () => {
    const port = await freePort()
    const leaving = endpointAt('10.0.0.1', { local: true, conditions: { serving: true, terminating: true } })
    await checks.observe(view, view.change({ 'default/web': local(port, [leaving]) }))
    expect((await get(port)).status).toBe(503)
  })

  test('a proxy that is not healthy: 503', async () => {
    const port = await freePort()
    await checks.observe(view, view.change({ 'default/web': local(port) }))
    health.healthy = false
    const response = await get(port)
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ localEndpoints: 1, serviceProxyHealthy: false })
  })
})

describe('ports follow the services', () => {
  test('endpoints change in place, ports move, services go', async () => {
    const [first, second] = [await freePort(), await freePort()]
    await checks.observe(view, view.change({ 'default/web': local(first) }))
    await checks.observe(view, view.change({ 'default/web': local(first, []) }))
    expect((await get(first)).status).toBe(503)
    await checks.observe(view, view.change({ 'default/web': local(second) }))
    expect([await refused(first), (await get(second)).status]).toEqual([true, 200])
    await checks.observe(view, view.change({ 'default/web': undefined }))
    expect([await refused(second), checks.size]).toEqual([true, 0])
    expect(lines.filter((line) => line.startsWith('2 Opened'))).toHaveLength(2)
  })

  test('a port goes from one service to another in one step', async () => {
    const port = await freePort()
    await checks.observe(view, view.change({ 'default/b': local(port, undefined, 'b') }))
    await checks.observe(view, view.change({ 'default/a': local(port, undefined, 'a'), 'default/b': undefined }))
    expect(await (await get(port)).json()).toMatchObject({ service: { name: 'a' } })
    expect(events).toEqual([])
  })

  test('what changes while a port is being opened is not lost', async () => {
    const port = await freePort()
    const opening = checks.observe(view, view.change({ 'default/web': local(port) }))
    const changed = checks.observe(view, view.change({ 'default/web': local(port, []) }))
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
    await checks.observe(view, view.change({}))
    expect([(await get(port)).status, checks.size]).toEqual([200, 1])
  })

  test('only on the addresses that nodePortAddresses has', async () => {
    const port = await freePort()
    await checks.observe(view, view.change({ 'default/web': local(port) }))
    await expect(get(port, '127.0.0.2')).rejects.toThrow()
  })
})

test('a port in use is said once, as log and Event, and opened at a later sync', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  const { port } = other.address() as AddressInfo
  await checks.observe(view, view.change({ 'default/web': local(port) }))
  await checks.observe(view, view.change({}))
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
  await checks.observe(view, view.change({}))
  expect((await get(port)).status).toBe(200)
})

describe('where ports are opened', () => {
  const interfaceAddresses = ['127.0.0.1', '::1', '10.0.0.5', '10.0.0.6', 'fd00::5', 'fe80::1']
  test.each([
    [['all'], ['0.0.0.0', '::']],
    [[], ['0.0.0.0', '::']],
    [['primary'], ['10.0.0.5', 'fd00::5']],
    [['10.0.0.0/8'], ['10.0.0.5', '10.0.0.6', '::']],
    [
      ['10.0.0.6/32', 'fd00::/8'],
      ['10.0.0.6', 'fd00::5'],
    ],
    [['localhost'], ['127.0.0.1', '::1']],
    [['192.0.2.0/24', 'fd00::/8'], ['fd00::5']],
    [
      ['10.0.0.0/8', '0.0.0.0/0'],
      ['0.0.0.0', '::'],
    ],
  ])('nodePortAddresses %j', (nodePortAddresses, hosts) => {
    const nodeIps = ['10.0.0.5', 'fd00::5', '10.0.0.6']
    expect(listenAddresses({ nodePortAddresses, nodeIps, interfaceAddresses }).map(({ host }) => host)).toEqual(hosts)
  })
})
