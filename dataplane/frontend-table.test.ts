import { create } from '@bufbuild/protobuf'
import { type Log, localv1, silentLog } from '@kpng/api'
import { describe, expect, it, test } from 'vitest'
import { endpointKey, type Frontend, frontendId } from './frontend.js'
import { FrontendTable } from './frontend-table.js'
import type { DataplaneOptions } from './settings.js'
import { change, endpoint, fullSync, ips, type TestService, tcp, thisNode, udp, view } from './testing/objects.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: ['192.0.2.7', '2001:db8::7'] } as const

/** A table that serves some Services, and what it logged. */
function serving(services: readonly TestService[], options: DataplaneOptions = {}, node: TestNode = thisNode()) {
  const logged: string[] = []
  const log: Log = { ...silentLog, warn: (_, fields) => logged.push(`${fields?.service}: ${fields?.reason}`) }
  const table = new FrontendTable(options, log)
  const state = view(services)
  state.node = node === 'unknown' ? undefined : node
  table.apply(state, fullSync, machine)
  return { table, state, logged, all: [...table.all()].map(line).sort() }
}

type TestNode = ReturnType<typeof thisNode> | 'unknown'

/** `10.96.0.1:80/tcp default/web → 10.244.1.1:8080 | outside drop` */
function line({ inside, outside, ...frontend }: Frontend): string {
  const audience = ({ endpoints, otherwise }: Frontend['inside']) =>
    endpoints.length === 0 ? otherwise : endpoints.map(endpointKey).join(' ')
  const forOutside = inside === outside ? '' : ` | outside ${audience(outside)}`
  return `${frontendId(frontend)} ${frontend.service} → ${audience(inside)}${forOutside}`
}

const web = (more: Partial<TestService> = {}): TestService => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1') },
  endpoints: [endpoint('10.244.1.1')],
  ...more,
})

test('a Service with a cluster IP, an external IP, a load-balancer IP and a node port has a frontend for each', () => {
  const all = ips('10.96.0.1', 'fd00:96::1')
  const { all: lines } = serving([
    web({
      ips: { clusterIps: all, externalIps: ips('192.0.2.1'), loadBalancerIps: ips('198.51.100.1') },
      ports: [tcp(80, { nodePort: 30_080 })],
      endpoints: [endpoint('10.244.1.1'), endpoint('fd00:244::1')],
    }),
  ])
  expect(lines).toEqual([
    '10.96.0.1:80/tcp default/web → 10.244.1.1:8080',
    '192.0.2.1:80/tcp default/web → 10.244.1.1:8080',
    '198.51.100.1:80/tcp default/web → 10.244.1.1:8080',
    'IPv4 node port 30080/tcp default/web → 10.244.1.1:8080',
    'IPv6 node port 30080/tcp default/web → [fd00:244::1]:8080',
    '[fd00:96::1]:80/tcp default/web → [fd00:244::1]:8080',
  ])
})

describe('an endpoint without scopes', () => {
  const withoutScopes = (ip: string, local: boolean) =>
    create(localv1.EndpointSchema, { ips: ips(ip), local }) as localv1.Endpoint
  const endpoints = [withoutScopes('10.244.1.1', true), withoutScopes('10.244.2.1', false)]

  it('serves everybody', () => {
    expect(serving([web({ endpoints })]).all).toEqual([
      '10.96.0.1:80/tcp default/web → 10.244.1.1:8080 10.244.2.1:8080',
    ])
  })

  it('follows the traffic policies', () => {
    const local = { internalTrafficToLocal: true, externalTrafficToLocal: true, ports: [tcp(80, { nodePort: 30_080 })] }
    expect(serving([web({ endpoints, ...local })]).all).toEqual([
      '10.96.0.1:80/tcp default/web → 10.244.1.1:8080',
      'IPv4 node port 30080/tcp default/web → 10.244.1.1:8080 10.244.2.1:8080 | outside 10.244.1.1:8080',
    ])
  })
})

describe('without an endpoint', () => {
  const policies = { internalTrafficToLocal: true, externalTrafficToLocal: true }
  const ports = (v4: boolean) => [tcp(80, { nodePort: 30_080, servedFamilies: { v4 } })]

  it('refuses if there is none anywhere', () => {
    expect(serving([web({ ...policies, ports: ports(false), endpoints: [] })]).all).toEqual([
      '10.96.0.1:80/tcp default/web → refuse',
      'IPv4 node port 30080/tcp default/web → refuse | outside refuse',
    ])
  })

  it('drops what a Local policy keeps from the endpoints of other nodes', () => {
    const endpoints = [endpoint('10.244.2.1', { scopes: ['cluster'] })]
    expect(serving([web({ ...policies, ports: ports(true), endpoints })]).all).toEqual([
      '10.96.0.1:80/tcp default/web → drop',
      'IPv4 node port 30080/tcp default/web → 10.244.2.1:8080 | outside drop',
    ])
  })
})

describe('addresses that are not safe', () => {
  const attack = web({
    ips: { clusterIps: ips('10.96.0.1'), loadBalancerIps: ips('127.0.0.1'), externalIps: ips('169.254.169.254') },
    endpoints: [endpoint('127.0.0.1'), endpoint('169.254.169.254'), endpoint('10.244.1.1')],
  })

  it('are neither served nor used, and the log says so once', () => {
    const { all, logged, table, state } = serving([attack])
    expect(all).toEqual(['10.96.0.1:80/tcp default/web → 10.244.1.1:8080'])
    expect(logged).toEqual([
      'default/web: address 127.0.0.1 is not served because it is a loopback address',
      'default/web: address 169.254.169.254 is not served because it is a link-local address',
      'default/web: endpoint 127.0.0.1 is not used because it is a loopback address',
      'default/web: endpoint 169.254.169.254 is not used because it is a link-local address',
    ])
    expect(table.problems.get('default/web')?.map(({ kind }) => kind)).toEqual([
      'loopback-address',
      'link-local-address',
      'loopback-endpoint',
      'link-local-endpoint',
    ])
    table.apply(state, change(state, 'web', { ...attack, ports: [tcp(81)] }), machine)
    expect(logged).toHaveLength(4)
  })

  it('of the loopback are served where that is allowed', () => {
    const { all } = serving([attack], { allowLoopback: true })
    expect(all).toEqual([
      '10.96.0.1:80/tcp default/web → 127.0.0.1:8080 10.244.1.1:8080',
      '127.0.0.1:80/tcp default/web → 127.0.0.1:8080 10.244.1.1:8080',
    ])
  })

  it('of the node and of pods are served unless they are protected', () => {
    const detectLocal = { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } as const
    const service = web({ ips: { externalIps: ips('172.30.0.1', '10.244.9.9', '192.0.2.1') } })
    expect(serving([service], { detectLocal }).all).toHaveLength(3)
    const { all, logged } = serving([service], { detectLocal, protectNodeAndPodIps: true })
    expect(all).toEqual(['192.0.2.1:80/tcp default/web → 10.244.1.1:8080'])
    expect(logged).toHaveLength(2)
  })
})

describe('an address that two Services ask for', () => {
  const thief = { name: 'a-thief', ips: { externalIps: ips('10.96.0.1') }, ports: [tcp(80), tcp(81)] }

  it('belongs to the Service whose cluster IP it is, on all ports', () => {
    const { all, logged, table, state } = serving([thief, web()])
    expect(all).toEqual(['10.96.0.1:80/tcp default/web → 10.244.1.1:8080'])
    expect(logged).toEqual([
      'default/a-thief: 10.96.0.1:80/tcp belongs to Service default/web',
      'default/a-thief: 10.96.0.1:81/tcp is a cluster IP of another Service',
    ])
    const changes = table.apply(state, change(state, 'web', undefined), machine)
    expect(changes.frontends.map(({ before, after }) => [before?.service, after?.service])).toEqual([
      ['default/web', 'default/a-thief'],
      [undefined, 'default/a-thief'],
    ])
  })

  it('belongs among equals to the name that comes first', () => {
    const external = { ips: { externalIps: ips('192.0.2.1') } }
    const { all } = serving([
      { name: 'b', ...external },
      { name: 'a', ...external },
    ])
    expect(all).toEqual(['192.0.2.1:80/tcp default/a → refuse'])
  })
})

describe('node ports', () => {
  const ports = [tcp(80, { nodePort: 30_080 })]

  it('are open in the families of the cluster IPs, and in all without one', () => {
    expect(serving([web({ ports })]).all.filter((each) => each.includes('node port'))).toHaveLength(1)
    expect(serving([web({ ports, ips: {} })]).all).toHaveLength(2)
  })

  it.each<[string, readonly string[], TestNode, string[], string[]]>([
    ['primary: the first address of each family', ['primary'], thisNode(), ['172.30.0.1/32'], ['fd00:30::1/128']],
    ['primary without a Node object: of this machine', ['primary'], 'unknown', ['192.0.2.7/32'], ['2001:db8::7/128']],
    [
      'primary, no address of a family: closed there',
      ['primary'],
      thisNode({ addresses: ['10.1.1.1'] }),
      ['10.1.1.1/32'],
      [],
    ],
    ['CIDRs: a family without one is open everywhere', ['10.0.0.0/8'], thisNode(), ['10.0.0.0/8'], ['::/0']],
    [
      'primary and CIDRs together',
      ['primary', '10.0.0.0/8'],
      thisNode(),
      ['10.0.0.0/8', '172.30.0.1/32'],
      ['fd00:30::1/128'],
    ],
    ['all', ['all'], thisNode(), ['0.0.0.0/0'], ['::/0']],
    ['localhost', ['localhost'], thisNode(), ['127.0.0.0/8'], ['::1/128']],
  ])('%s', (_, nodePortAddresses, node, v4, v6) => {
    const { nodePortCidrs } = serving([], { nodePortAddresses }, node).table.node
    expect(nodePortCidrs.IPv4.map(({ text }) => text)).toEqual(v4)
    expect(nodePortCidrs.IPv6.map(({ text }) => text)).toEqual(v6)
  })

  it('do not change when an address of the node does', () => {
    const { table, state } = serving([web({ ports })], { nodePortAddresses: ['primary'] })
    state.node = thisNode({ addresses: ['172.30.0.2'] })
    const changes = table.apply(state, { ...fullSync, full: false, node: true }, machine)
    expect(changes.frontends).toEqual([])
    expect(changes.nodeBefore?.nodePortCidrs.IPv4.map(({ text }) => text)).toEqual(['172.30.0.1/32'])
    expect(table.node.nodePortCidrs.IPv4.map(({ text }) => text)).toEqual(['172.30.0.2/32'])
  })
})

describe('source ranges', () => {
  const allowed = (sourceRanges: string[]) => {
    const { table } = serving([web({ ips: { loadBalancerIps: ips('198.51.100.1') }, ipFilters: [{ sourceRanges }] })])
    return table.get('198.51.100.1:80/tcp')?.allowedSources?.map(({ text }) => text)
  }

  it.each([
    [[' 203.0.113.0/24'], ['203.0.113.0/24']],
    [['2001:db8::/32'], undefined],
    [['nonsense'], []],
    [[], []],
    // The node is in the range: its packets to the address, which may be its own, come from that address.
    [['172.30.0.0/16'], ['172.30.0.0/16', '198.51.100.1/32']],
  ])('%j', (given, expected) => expect(allowed(given)).toEqual(expected))
})

describe('whole addresses', () => {
  it('are one frontend per address, for every port and protocol', () => {
    const { all } = serving([
      web({
        mapIp: true,
        ips: { externalIps: ips('10.0.0.55', '1000::55') },
        endpoints: [endpoint('10.244.1.1 fd00::1')],
      }),
    ])
    expect(all).toEqual(['10.0.0.55 default/web → 10.244.1.1', '1000::55 default/web → fd00::1'])
  })
})

test('a headless Service with external IPs has frontends', () => {
  const { all } = serving([
    web({ ips: { headless: true, externalIps: ips('10.0.0.55') }, ports: [tcp(6000, { targetPort: 6000 })] }),
  ])
  expect(all).toEqual(['10.0.0.55:6000/tcp default/web → 10.244.1.1:6000'])
})

test('endpoints on this node are local, also if only their address says so', () => {
  const node = thisNode({ podCidrs: ['10.244.1.0/24'] })
  const endpoints = [
    endpoint('10.244.1.1'),
    endpoint('172.30.0.1'),
    endpoint('10.244.2.1'),
    endpoint('10.9.9.9', { local: true }),
  ]
  const { table } = serving([web({ endpoints })], {}, node)
  const local = table.get('10.96.0.1:80/tcp')?.inside.endpoints.filter(({ isLocal }) => isLocal)
  expect(local?.map(({ ip }) => ip)).toEqual(['10.244.1.1', '172.30.0.1', '10.9.9.9'])
})

test.each([
  [{}, 'notPods', 'always'],
  [{ externalTrafficToLocal: true }, 'notPods', 'node'],
])('who is masqueraded: %j', (more, clusterIp, external) => {
  const { table } = serving([web({ ips: { clusterIps: ips('10.96.0.1'), externalIps: ips('192.0.2.1') }, ...more })])
  expect([table.get('10.96.0.1:80/tcp')?.masquerade, table.get('192.0.2.1:80/tcp')?.masquerade]).toEqual([
    clusterIp,
    external,
  ])
})

test('one changed endpoint changes the frontends of its Service and no other', () => {
  const { table, state } = serving([web(), { name: 'dns', ips: { clusterIps: ips('10.96.0.2') }, ports: [udp(53)] }])
  const changes = table.apply(state, change(state, 'web', web({ endpoints: [endpoint('10.244.1.2')] })), machine)
  expect(changes.frontends.map(({ before, after }) => [before && line(before), after && line(after)])).toEqual([
    ['10.96.0.1:80/tcp default/web → 10.244.1.1:8080', '10.96.0.1:80/tcp default/web → 10.244.1.2:8080'],
  ])
})

test('addresses of a family in which the Service has no cluster IP are not served, and it is said', () => {
  const addresses = {
    loadBalancerIps: ips('192.0.2.1', '2001:db8::1'),
    externalIps: ips('198.51.100.1', '2001:db8:51::1'),
  }
  const service = web({
    ips: { clusterIps: ips('10.96.0.1'), ...addresses },
    ports: [tcp(80, { nodePort: 30080 })],
    endpoints: [endpoint('10.244.1.1'), endpoint('fd00::1')],
  })
  const { all, logged } = serving([service])
  expect(all.map((each) => each.split(' default/web')[0])).toEqual([
    ...['10.96.0.1:80/tcp', '192.0.2.1:80/tcp', '198.51.100.1:80/tcp', 'IPv4 node port 30080/tcp'],
  ])
  expect(logged).toEqual([
    'default/web: address 2001:db8::1 is not served: the Service has no IPv6 cluster IP',
    'default/web: address 2001:db8:51::1 is not served: the Service has no IPv6 cluster IP',
  ])
  // Without cluster IPs, each family is served.
  expect(serving([web({ ips: { headless: true, ...addresses } })]).all).toHaveLength(4)
})

test('where source ranges cannot be enforced, an address with ranges is not served; one that everybody may use is', () => {
  const service = (...sourceRanges: string[]) =>
    web({
      ips: { clusterIps: ips('10.96.0.1'), loadBalancerIps: ips('192.0.2.1') },
      ipFilters: [{ targetIps: ips('192.0.2.1'), sourceRanges }],
    })
  const closed = serving([service('203.0.113.0/24')], { sourceRanges: false })
  expect(closed.all).toEqual(['10.96.0.1:80/tcp default/web → 10.244.1.1:8080'])
  expect(closed.logged).toEqual([
    'default/web: address 192.0.2.1 is not served: this data plane cannot restrict clients, and it has loadBalancerSourceRanges',
  ])
  expect(serving([service('not a range')], { sourceRanges: false }).all).toHaveLength(1)
  expect(serving([service('203.0.113.0/24', '0.0.0.0/0')], { sourceRanges: false }).all).toHaveLength(2)
  expect(serving([service('203.0.113.0/24')]).all).toHaveLength(2)
})
