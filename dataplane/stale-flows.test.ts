import { describe, expect, it } from 'vitest'
import { FrontendTable } from './frontend-table.js'
import { allFlowChecks, type Flow, flowChecks, staleness } from './stale-flows.js'
import { change, endpoint, fullSync, ips, type TestService, tcp, udp, view } from './testing/objects.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const

const dns = (more: Partial<TestService> = {}): TestService => ({
  name: 'dns',
  ips: { clusterIps: ips('10.96.0.10'), externalIps: ips('192.0.2.10') },
  ports: [udp(53, { targetPort: 53, nodePort: 30_053 })],
  endpoints: [endpoint('10.244.1.1'), endpoint('10.244.2.1')],
  ...more,
})

/** A flow to an address that an endpoint answers; without one, nobody changed the destination. */
const flow = (destination: string, answeredBy?: string, destinationPort = 53): Flow => ({
  family: 'IPv4',
  destination,
  destinationPort,
  answeredBy: answeredBy ?? destination,
  answeredByPort: answeredBy ? 53 : destinationPort,
  isRedirected: answeredBy !== undefined,
})

/** Which flows a change makes stale. */
function afterChange(before: TestService | undefined, after: TestService | undefined) {
  const table = new FrontendTable()
  const state = view(before ? [before] : [])
  table.apply(state, fullSync, machine)
  const changes = table.apply(state, change(state, 'dns', after), machine)
  const checks = flowChecks(changes.frontends)
  return { checks, isStale: staleness(checks, table) }
}

describe('flows to an endpoint', () => {
  const gone = afterChange(dns(), dns({ endpoints: [endpoint('10.244.1.1')] }))

  it('go when it is gone, at each address of the Service', () => {
    expect(gone.isStale(flow('10.96.0.10', '10.244.2.1'))).toBe(true)
    expect(gone.isStale(flow('192.0.2.10', '10.244.2.1'))).toBe(true)
    expect(gone.isStale(flow('172.30.0.1', '10.244.2.1', 30_053))).toBe(true)
  })

  it('stay when it serves', () => {
    expect(gone.isStale(flow('10.96.0.10', '10.244.1.1'))).toBe(false)
    expect(gone.isStale(flow('172.30.0.1', '10.244.1.1', 30_053))).toBe(false)
  })

  it('of other addresses and ports are not touched', () => {
    expect(gone.isStale(flow('10.96.0.11', '10.244.2.1'))).toBe(false)
    expect(gone.isStale(flow('10.96.0.10', '10.244.2.1', 54))).toBe(false)
    // Traffic of others to the same port of another machine.
    expect(gone.isStale(flow('203.0.113.1', undefined, 30_053))).toBe(false)
  })

  it('stay while it terminates and still serves', () => {
    const draining = endpoint('10.244.2.1', { scopes: [] })
    const { checks, isStale } = afterChange(dns(), dns({ endpoints: [endpoint('10.244.1.1'), draining] }))
    expect(checks).toEqual([])
    expect(isStale(flow('10.96.0.10', '10.244.2.1'))).toBe(false)
  })

  it('stay when externalTrafficPolicy becomes Local and it is on another node', () => {
    const endpoints = [endpoint('10.244.1.1'), endpoint('10.244.2.1', { scopes: ['internal', 'cluster'] })]
    const { isStale } = afterChange(dns(), dns({ externalTrafficToLocal: true, endpoints }))
    expect(isStale(flow('192.0.2.10', '10.244.2.1'))).toBe(false)
  })
})

describe('flows that began before the Service', () => {
  it('go when it comes, so that the rules see the next packet', () => {
    expect(afterChange(undefined, dns()).isStale(flow('10.96.0.10'))).toBe(true)
  })

  it('go also if it comes without an endpoint, so that the client is refused', () => {
    expect(afterChange(undefined, dns({ endpoints: [] })).isStale(flow('10.96.0.10'))).toBe(true)
  })

  it('go when its first endpoint comes', () => {
    expect(afterChange(dns({ endpoints: [] }), dns()).isStale(flow('172.30.0.1', undefined, 30_053))).toBe(true)
  })
})

describe('when a Service is gone', () => {
  const { isStale } = afterChange(dns(), undefined)

  it('flows that it redirected go', () => expect(isStale(flow('10.96.0.10', '10.244.1.1'))).toBe(true))
  it('others stay', () => expect(isStale(flow('192.0.2.10'))).toBe(false))
})

it('looks for nothing if only TCP changed, or only an endpoint came', () => {
  const tcpOnly = dns({ ports: [tcp(53)] })
  expect(afterChange(tcpOnly, { ...tcpOnly, endpoints: [] }).checks).toEqual([])
  const more = [endpoint('10.244.1.1'), endpoint('10.244.2.1'), endpoint('10.244.3.1')]
  expect(afterChange(dns(), dns({ endpoints: more })).checks).toEqual([])
})

it('flows to a Service that has the whole address keep their port', () => {
  const whole = dns({ mapIp: true, ips: { externalIps: ips('10.0.0.55') } })
  const { isStale } = afterChange(whole, { ...whole, endpoints: [endpoint('10.244.1.1')] })
  expect(isStale(flow('10.0.0.55', '10.244.2.1', 4711))).toBe(true)
  expect(isStale(flow('10.0.0.55', '10.244.1.1', 4711))).toBe(false)
})

it('after a start, every UDP frontend is looked at', () => {
  const table = new FrontendTable()
  table.apply(view([dns(), { name: 'web' }]), fullSync, machine)
  expect(allFlowChecks(table)).toHaveLength(3)
})
