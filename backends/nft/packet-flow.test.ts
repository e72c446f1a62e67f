import { localv1 } from '@kpng/api'
import { FrontendTable } from '@kpng/dataplane'
import { tableFamilies as families, type TableFamily } from '@kpng/linux/nftables'
import { describe, expect, test } from 'vitest'
import {
  endpoint,
  fullSync,
  ips,
  type TestService,
  type TestView,
  tcp,
  thisNode,
  view,
} from '../../dataplane/testing/objects.js'
import { ElementState } from './elements/element-state.js'
import { type NftOptions, settingsOf } from './options.js'
import { addresses, addressOf, type Case, cases, labView, type Name, options } from './testing/cases.js'
import { evaluate, type Outcome } from './testing/evaluate.js'

// The rules and elements for a view, walked through without a kernel: see testing/evaluate.ts.

function rules(of: TestView, given: NftOptions = options) {
  const settings = settingsOf(given)
  const table = new FrontendTable(settings.dataplane)
  table.apply(of, fullSync, { families: ['IPv4', 'IPv6'], addresses: [] })
  const elements = new ElementState(settings).rebuild(table)
  const host = { addresses: [...addresses.node, ...addresses.otherNodeAddress, '127.0.0.1', '::1'] }
  return { elements, ask: (packet: Parameters<typeof evaluate>[0]) => evaluate(packet, elements, settings, host) }
}

const nameOf = (address: string): string =>
  (Object.keys(addresses) as Name[]).find((name) => (addresses[name] as readonly string[]).includes(address)) ?? address

/** `endpoint podA1 podB1 masqueraded`, or the verdict alone. */
function summary({ verdict, endpoints, masqueraded }: Outcome): string {
  const reached = [...endpoints.keys()].map((text) => nameOf(text.slice(0, text.lastIndexOf(':')))).sort()
  return [verdict, ...reached, ...(masqueraded && verdict === 'endpoint' ? ['masqueraded'] : [])].join(' ')
}

function expectedSummary({ expected, from }: Case): string {
  if (typeof expected === 'string') return expected
  const masqueraded = expected.masqueraded ?? from === 'node'
  return ['endpoint', ...[...expected.to].sort(), ...(masqueraded ? ['masqueraded'] : [])].join(' ')
}

describe.each(families)('%s', (family: TableFamily) => {
  const { ask } = rules(labView())
  test.each(cases)('$from → $to:$port $shows', (row) => {
    const { from, to, port, protocol = 'tcp' } = row
    const packet = { source: addressOf(from, family), destination: addressOf(to, family), port, protocol }
    const wanted = from === 'podA2' && row.to === 'sticky' ? 'endpoint podA1 podA2 podB1' : expectedSummary(row)
    expect(summary(ask({ ...packet, fromNode: from === 'node' }))).toBe(wanted)
  })
})

const reach = (outcome: Outcome) => summary(outcome)

describe('who is masqueraded on the way to a cluster IP', () => {
  const service = { name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [endpoint('10.244.2.10')] }
  const to = { destination: '10.96.0.1', port: 80 }
  test('nobody, when pods cannot be told from others', () => {
    const { ask } = rules(view([service]), {})
    expect(reach(ask({ ...to, source: '172.30.0.2' }))).toBe('endpoint podB1')
  })
  test('everybody with masqueradeAll (59)', () => {
    const { ask } = rules(view([service]), { masqueradeAll: true })
    expect(reach(ask({ ...to, source: '10.244.1.10' }))).toBe('endpoint podB1 masqueraded')
  })
  test.each([
    ['NodeCIDR', { mode: 'NodeCIDR' }, { source: '10.244.1.10' }, { source: '10.244.2.11' }],
    ['BridgeInterface', { mode: 'BridgeInterface', name: 'cni0' }, { interface: 'cni0' }, { interface: 'eth0' }],
    [
      'InterfaceNamePrefix',
      { mode: 'InterfaceNamePrefix', prefix: 'cali' },
      { interface: 'cali12' },
      { interface: 'eth0' },
    ],
  ] as const)('%s (60)', (_, detectLocal, isPod, isNoPod) => {
    const of = view([service])
    of.node = thisNode({ podCidrs: ['10.244.1.0/24'] })
    const { ask } = rules(of, { detectLocal })
    expect(reach(ask({ source: '10.244.1.12', ...to, ...isPod }))).toBe('endpoint podB1')
    expect(reach(ask({ source: '10.244.1.12', ...to, ...isNoPod }))).toBe('endpoint podB1 masqueraded')
  })
})

describe('addresses', () => {
  const exposed = (init: object) => ({
    name: 'web',
    ports: [tcp(80, { nodePort: 30080 })],
    endpoints: [endpoint('10.244.2.10')],
    ...init,
  })
  test('external IPs can be switched off (17)', () => {
    const of = view([exposed({ ips: { externalIps: ips('198.51.100.1') } })])
    const packet = { source: '172.30.0.2', destination: '198.51.100.1', port: 80 }
    expect(reach(rules(of).ask(packet))).toBe('endpoint podB1 masqueraded')
    expect(reach(rules(of, { externalIps: false }).ask(packet))).toBe('passed')
  })
  test('no rules for load-balancer IPs with ipMode Proxy (47)', () => {
    const of = view([exposed({ ips: { loadBalancerProxyIps: ips('192.0.2.1') } })])
    expect(reach(rules(of).ask({ source: '172.30.0.2', destination: '192.0.2.1', port: 80 }))).toBe('passed')
  })
  test('node ports on the addresses of nodePortAddresses, never on the loopback (40, 41)', () => {
    const of = view([exposed({})])
    const { ask } = rules(of, { nodePortAddresses: ['172.31.0.0/16', '127.0.0.0/8'] })
    expect(reach(ask({ source: '172.30.0.2', destination: '172.31.0.1', port: 30080 }))).toBe(
      'endpoint podB1 masqueraded',
    )
    expect(reach(ask({ source: '172.30.0.2', destination: '172.30.0.1', port: 30080 }))).toBe('passed')
    expect(reach(ask({ source: '127.0.0.1', destination: '127.0.0.1', port: 30080, fromNode: true }))).toBe('passed')
  })
  test('node ports on all addresses of a family that nodePortAddresses has no CIDR of (40)', () => {
    const { ask } = rules(view([{ ...exposed({}), endpoints: [endpoint('10.244.2.10 fd00:244:2::10')] }]), {
      nodePortAddresses: ['172.31.0.0/16'],
    })
    for (const destination of [addresses.node[1], addresses.otherNodeAddress[1]]) {
      const outcome = ask({ source: 'fd00:30::2', destination, port: 30080 })
      expect(reach(outcome)).toBe('endpoint podB1 masqueraded')
    }
    expect(reach(ask({ source: '172.30.0.2', destination: addresses.node[0], port: 30080 }))).toBe('passed')
  })
  test('a bad address is left out, the rest is served (11)', () => {
    const of = view([exposed({ ips: { clusterIps: { v4: ['10.96.0.999', '010.1.1.1', '10.96.0.1'], v6: [] } } })])
    const { ask, elements } = rules(of)
    expect(reach(ask({ source: '10.244.1.10', destination: '10.96.0.1', port: 80 }))).toBe('endpoint podB1')
    expect(elements.get('ip cluster-ips')?.size).toBe(1)
  })
  test('families are independent (49)', () => {
    const of = view([exposed({ ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') } })])
    const { ask } = rules(of)
    expect(reach(ask({ source: '10.244.1.10', destination: '10.96.0.1', port: 80 }))).toBe('endpoint podB1')
    expect(reach(ask({ source: 'fd00:244:1::10', destination: 'fd00:96::1', port: 80 }))).toBe('rejected')
  })
  test('SCTP (52)', () => {
    const port = { ...tcp(99), protocol: localv1.Protocol.SCTP }
    const of = view([exposed({ ips: { clusterIps: ips('10.96.0.1') }, ports: [port] })])
    const packet = { source: '10.244.1.10', destination: '10.96.0.1', port: 99 }
    expect(reach(rules(of).ask({ ...packet, protocol: 'sctp' }))).toBe('endpoint podB1')
    expect(reach(rules(of).ask({ ...packet, protocol: 'tcp' }))).toBe('rejected')
  })
  test('two services that ask for one external IP and port: the first by name is served', () => {
    const first = {
      ...exposed({ ips: { externalIps: ips('198.51.100.1') }, endpoints: [endpoint('10.244.1.10')] }),
      name: 'a',
    }
    const second = { ...exposed({ ips: { externalIps: ips('198.51.100.1') } }), name: 'b', ports: [tcp(80)] }
    const { ask } = rules(view([second, first]))
    expect(reach(ask({ source: '172.30.0.2', destination: '198.51.100.1', port: 80 }))).toBe(
      'endpoint podA1 masqueraded',
    )
  })
})

describe('source ranges (45)', () => {
  const loadBalancer = ips('192.0.2.1', '2001:db8:2::1')
  const asking = (...ipFilters: NonNullable<TestService['ipFilters']>) => {
    const endpoints = [endpoint('10.244.2.10 fd00:244:2::10')]
    const { ask } = rules(view([{ name: 'lb', ips: { loadBalancerIps: loadBalancer }, ipFilters, endpoints }]))
    return [
      ask({ source: '172.30.0.2', destination: '192.0.2.1', port: 80 }),
      ask({ source: 'fd00:30::2', destination: '2001:db8:2::1', port: 80 }),
    ].map(({ verdict }) => verdict)
  }
  test.each([
    ['of one family leave the other open, as in kube-proxy', ['172.30.0.0/16'], ['endpoint', 'endpoint']],
    ['of one family are those of that family', ['10.9.0.0/16'], ['dropped', 'endpoint']],
    ['that are not there at all let nobody in', [], ['dropped', 'dropped']],
    ['that cannot be read let nobody in', ['172.30.0.0/33'], ['dropped', 'dropped']],
    ['that cannot be read shut the family without others', ['172.30.0.0/16', 'x'], ['endpoint', 'dropped']],
  ])('%s', (_, sourceRanges, expected) => {
    expect(asking({ sourceRanges })).toEqual(expected)
    expect(asking({ targetIps: loadBalancer, sourceRanges })).toEqual(expected)
  })
  test('of another address say nothing', () => {
    expect(asking({ targetIps: ips('192.0.2.9'), sourceRanges: [] })).toEqual(['endpoint', 'endpoint'])
  })
})

describe('the spread over N endpoints (24)', () => {
  const shares = (count: number): number[] => {
    const endpoints = Array.from({ length: count }, (_, index) =>
      endpoint(`10.${index >> 14}.${(index >> 7) & 127}.${index & 127}`),
    )
    const { ask } = rules(view([{ name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints }]))
    const { endpoints: reached } = ask({ source: '10.244.1.10', destination: '10.96.0.1', port: 80 })
    expect(reached.size).toBe(count)
    return [...reached.values()].map((share) => share * count)
  }
  test('is exact up to 16', () => {
    for (let count = 1; count <= 16; count++) for (const share of shares(count)) expect(share).toBeCloseTo(1, 9)
  })
  test.each([17, 20, 33, 48, 63, 64, 65, 100, 129, 200, 256, 300, 1000, 1025, 5000, 16384])(
    'is within 1 in 100 for %i',
    (count) => {
      const all = shares(count)
      expect(Math.min(...all)).toBeGreaterThan(0.99)
      expect(Math.max(...all)).toBeLessThan(1.01)
    },
  )
})
