import { silentLog } from '@kpng/api'
import { describe, expect, test } from 'vitest'
import { change, endpoint, ips, type TestService, udp, view } from '../../dataplane/testing/objects.js'
import { parseAddress } from './address.js'
import { DesiredState } from './desired-state.js'
import { nodeContext } from './node-context.js'
import { settingsOf } from './options.js'
import { conntrackArguments, deletedIn, type Flow, staleness, udpChanges } from './stale-flows.js'

const bytes = (text: string) => parseAddress(text)?.bytes ?? ''

const dns = (...numbers: number[]): TestService => ({
  name: 'dns',
  ips: { clusterIps: ips('10.96.0.10') },
  ports: [udp(53, { nodePort: 30053 })],
  endpoints: numbers.map((number) => endpoint(`10.0.0.${number}`)),
})

function afterChange(before: TestService, after: TestService | undefined) {
  const of = view([before])
  const context = nodeContext(of.node, { families: ['ip'], hostAddresses: () => [] }, settingsOf())
  const state = new DesiredState(silentLog)
  state.rebuild(of, context)
  const transaction = state.change(of, change(of, 'dns', after), context)
  if (!transaction) throw new Error('The change touched everything.')
  const changes = udpChanges(transaction, state)
  return { changes, isStale: staleness(changes, state, context.nodeAddresses) }
}

const flow = (destination: string, port: number, by: string, byPort = 8080, isRedirected = true): Flow => ({
  family: 'ip',
  destination: bytes(destination),
  destinationPort: port,
  answeredBy: bytes(by),
  answeredByPort: byPort,
  isRedirected,
})

describe('stale UDP flows (53, 54)', () => {
  test('those of an endpoint that went, to the cluster IP and to the node port', () => {
    const { isStale } = afterChange(dns(1, 2), dns(2))
    expect(isStale(flow('10.96.0.10', 53, '10.0.0.1'))).toBe(true)
    expect(isStale(flow('10.96.0.10', 53, '10.0.0.2'))).toBe(false)
    expect(isStale(flow('172.30.0.1', 30053, '10.0.0.1'))).toBe(true)
    expect(isStale(flow('172.30.0.1', 30053, '10.0.0.2'))).toBe(false)
  })
  test('all of a service at zero endpoints, and of one that is gone', () => {
    for (const after of [dns(), undefined]) {
      expect(afterChange(dns(1), after).isStale(flow('10.96.0.10', 53, '10.0.0.1'))).toBe(true)
    }
  })
  test('those from before the first endpoint came, which nobody redirected', () => {
    const { isStale } = afterChange(dns(), dns(1))
    expect(isStale(flow('10.96.0.10', 53, '10.96.0.10', 53, false))).toBe(true)
    expect(isStale(flow('10.96.0.10', 53, '10.0.0.1'))).toBe(false)
  })
  test('those from before the first endpoints came, however many came at once', () => {
    const { isStale } = afterChange(dns(), dns(1, 2, 3))
    expect(isStale(flow('10.96.0.10', 53, '10.96.0.10', 53, false))).toBe(true)
    expect(isStale(flow('172.30.0.1', 30053, '172.30.0.1', 30053, false))).toBe(true)
    expect(isStale(flow('10.96.0.10', 53, '10.0.0.2'))).toBe(false)
  })
  test('an endpoint that joins others concerns no flow', () => {
    expect(afterChange(dns(1), dns(1, 2)).changes).toEqual([])
  })
  describe('externalTrafficPolicy (33)', () => {
    const exposed = (local: boolean): TestService => ({
      name: 'dns',
      externalTrafficToLocal: local,
      ips: { clusterIps: ips('10.96.0.10'), loadBalancerIps: ips('192.0.2.10') },
      ports: [udp(53, { nodePort: 30053 })],
      endpoints: [
        endpoint('10.0.0.1', { local: true }),
        endpoint('10.0.0.2', local ? { scopes: ['internal', 'cluster'] } : {}),
      ],
    })
    test('becomes Local: flows to endpoints elsewhere, but for those of the cluster IP', () => {
      const { isStale, changes } = afterChange(exposed(false), exposed(true))
      for (const [destination, port] of [
        ['192.0.2.10', 53],
        ['172.30.0.1', 30053],
      ] as const) {
        expect(isStale(flow(destination, port, '10.0.0.2'))).toBe(true)
        expect(isStale(flow(destination, port, '10.0.0.1'))).toBe(false)
      }
      expect(isStale(flow('10.96.0.10', 53, '10.0.0.2'))).toBe(false)
      expect(changes.flatMap((one) => conntrackArguments(one)?.join(' ') ?? [])).toEqual([
        '-D -f ipv4 -p udp --orig-dst 192.0.2.10 --dport 53 --dst-nat 10.0.0.2',
        '-D -f ipv4 -p udp --dport 30053 --dst-nat 10.0.0.2',
      ])
    })
    test('becomes Cluster: none, since all of them may stay', () => {
      const { isStale, changes } = afterChange(exposed(true), exposed(false))
      expect(isStale(flow('192.0.2.10', 53, '10.0.0.1'))).toBe(false)
      expect(changes).toEqual([])
    })
    test('stays Local while an endpoint moves to another node: the flows to it', () => {
      const moved = { ...exposed(true), endpoints: [endpoint('10.0.0.1', { scopes: ['internal', 'cluster'] })] }
      expect(afterChange(exposed(true), moved).isStale(flow('192.0.2.10', 53, '10.0.0.1'))).toBe(true)
    })
  })
  test('never those of others', () => {
    const { isStale } = afterChange(dns(1, 2), dns(2))
    expect(isStale(flow('10.96.0.11', 53, '10.0.0.1'))).toBe(false)
    expect(isStale(flow('8.8.8.8', 30053, '8.8.8.8', 30053, false))).toBe(false)
  })
  test('an endpoint that only changes its slot keeps its flows', () => {
    const { changes } = afterChange(dns(1, 2, 3), dns(2, 3))
    expect(new Set(changes.map(({ gone }) => gone))).toEqual(new Set([`${bytes('10.0.0.1')}\x1f\x90\0\0`]))
  })
  test('the arguments for the conntrack command', () => {
    const { changes } = afterChange(dns(1), undefined)
    expect(changes.map((one) => conntrackArguments(one)?.join(' '))).toEqual([
      '-D -f ipv4 -p udp --orig-dst 10.96.0.10 --dport 53 --dst-nat 10.0.0.1',
      '-D -f ipv4 -p udp --dport 30053 --dst-nat 10.0.0.1',
    ])
  })
  test('how many the conntrack command deleted', () => {
    expect(deletedIn('conntrack v1.4.7 (conntrack-tools): 2 flow entries have been deleted.')).toBe(2)
    expect(deletedIn('conntrack v1.4.7 (conntrack-tools): 0 flow entries have been deleted.')).toBe(0)
    expect(deletedIn('')).toBe(0)
  })
})
