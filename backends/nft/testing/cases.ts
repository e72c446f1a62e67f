import type { Protocol } from '@kpng/client'
import type { TableFamily } from '@kpng/linux/nftables'
import {
  endpoint,
  ips,
  type TestService,
  type TestView,
  tcp,
  thisNode,
  udp,
  view,
} from '../../../dataplane/testing/objects.js'
import type { NftOptions } from '../options.js'

// Packet flows as a table: who asks what, and what must come of it. Run on the rendered rules and on a real kernel.

/** Every address of the lab, for both families. */
export const addresses = {
  node: ['172.30.0.1', 'fd00:30::1'],
  otherNodeAddress: ['172.31.0.1', 'fd00:31::1'],
  client: ['172.30.0.2', 'fd00:30::2'],
  podA1: ['10.244.1.10', 'fd00:244:1::10'],
  podA2: ['10.244.1.11', 'fd00:244:1::11'],
  podB1: ['10.244.2.10', 'fd00:244:2::10'],
  web: ['10.96.0.1', 'fd00:96::1'],
  empty: ['10.96.0.2', 'fd00:96::2'],
  notHere: ['10.96.0.3', 'fd00:96::3'],
  exposed: ['10.96.0.4', 'fd00:96::4'],
  local: ['10.96.0.5', 'fd00:96::5'],
  localNotHere: ['10.96.0.6', 'fd00:96::6'],
  ranges: ['10.96.0.7', 'fd00:96::7'],
  solo: ['10.96.0.8', 'fd00:96::8'],
  sticky: ['10.96.0.9', 'fd00:96::9'],
  greedy: ['10.96.0.10', 'fd00:96::10'],
  shut: ['10.96.0.11', 'fd00:96::11'],
  goLocal: ['10.96.0.12', 'fd00:96::12'],
  unallocated: ['10.96.77.77', 'fd00:96::7777'],
  exposedExternal: ['198.51.100.1', '2001:db8:51::1'],
  exposedLb: ['192.0.2.1', '2001:db8:2::1'],
  localLb: ['192.0.2.2', '2001:db8:2::2'],
  localNotHereLb: ['192.0.2.3', '2001:db8:2::3'],
  openLb: ['192.0.2.4', '2001:db8:2::4'],
  closedLb: ['192.0.2.5', '2001:db8:2::5'],
  shutLb: ['192.0.2.6', '2001:db8:2::6'],
  goLocalLb: ['192.0.2.7', '2001:db8:2::7'],
  emptyExternal: ['198.51.100.2', '2001:db8:51::2'],
} as const satisfies Record<string, readonly [string, string]>

export type Name = keyof typeof addresses

export const addressOf = (name: Name, family: TableFamily): string => addresses[name][family === 'ip' ? 0 : 1]

const both = (...names: Name[]) => ips(...names.flatMap((name) => addresses[name]))
const pod = (name: Name, init?: Parameters<typeof endpoint>[1]) => endpoint(addresses[name].join(' '), init)

const served = { servedFamilies: { v4: true, v6: true } }
const unserved = { servedFamilies: { v4: false, v6: false } }
const a1 = pod('podA1', { local: true })
const a2 = pod('podA2', { local: true })
const b1 = pod('podB1')
/** How an endpoint of another node looks under externalTrafficPolicy Local. */
const b1ForTheCluster = pod('podB1', { scopes: ['internal', 'cluster'] })

export const services: readonly TestService[] = [
  { name: 'web', ips: { clusterIps: both('web') }, ports: [tcp(80), udp(53)], endpoints: [a1, b1] },
  {
    name: 'empty',
    ips: { clusterIps: both('empty'), externalIps: both('emptyExternal') },
    ports: [tcp(80, { nodePort: 30082, ...unserved }), udp(53, unserved)],
  },
  { name: 'not-here', ips: { clusterIps: both('notHere') }, internalTrafficToLocal: true, ports: [tcp(80, served)] },
  {
    name: 'exposed',
    type: 'LoadBalancer',
    ips: { clusterIps: both('exposed'), externalIps: both('exposedExternal'), loadBalancerIps: both('exposedLb') },
    ports: [tcp(80, { nodePort: 30080 }), udp(53, { nodePort: 30053 })],
    endpoints: [a1, b1],
  },
  {
    name: 'local',
    type: 'LoadBalancer',
    externalTrafficToLocal: true,
    ips: { clusterIps: both('local'), loadBalancerIps: both('localLb') },
    ports: [tcp(80, { nodePort: 30081 })],
    endpoints: [a1, b1ForTheCluster],
  },
  {
    name: 'local-not-here',
    type: 'LoadBalancer',
    externalTrafficToLocal: true,
    ips: { clusterIps: both('localNotHere'), loadBalancerIps: both('localNotHereLb') },
    ports: [tcp(80, { nodePort: 30083, ...served })],
    endpoints: [b1ForTheCluster],
  },
  {
    name: 'ranges-open',
    type: 'LoadBalancer',
    ips: { clusterIps: both('ranges'), loadBalancerIps: both('openLb', 'closedLb') },
    ipFilters: [
      {
        targetIps: both('openLb'),
        sourceRanges: [' 172.30.0.0/24', '172.30.0.0/16', 'fd00:30::/64', '10.244.1.10/32', 'fd00:244:1::10/128'],
      },
      { targetIps: both('closedLb'), sourceRanges: ['203.0.113.0/24', '2001:db8:dead::/48'] },
    ],
    ports: [tcp(80, { nodePort: 30084 })],
    endpoints: [a1],
  },
  { name: 'solo', ips: { clusterIps: both('solo') }, ports: [tcp(80), udp(53)], endpoints: [a1] },
  {
    name: 'sticky',
    ips: { clusterIps: both('sticky') },
    ports: [tcp(80), udp(53)],
    sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 600 } },
    endpoints: [a1, a2, b1],
  },
  {
    // By its name it would come first.
    name: 'a-greedy-one',
    ips: { clusterIps: both('greedy'), externalIps: both('solo'), loadBalancerIps: both('solo') },
    endpoints: [b1],
  },
  {
    name: 'ranges-unreadable',
    type: 'LoadBalancer',
    ips: { clusterIps: both('shut'), loadBalancerIps: both('shutLb') },
    ipFilters: [{ targetIps: both('shutLb'), sourceRanges: [] }],
    endpoints: [a1],
  },
  {
    name: 'go-local',
    type: 'LoadBalancer',
    externalTrafficToLocal: true,
    ips: { clusterIps: both('goLocal'), loadBalancerIps: both('goLocalLb') },
    endpoints: [
      pod('podA1', { local: true, scopes: ['internal', 'external'] }),
      pod('podB1', { scopes: ['internal'] }),
    ],
  },
]

export const options: NftOptions = {
  detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:244::/32'] },
}

export const labView = (more: readonly TestService[] = []): TestView => {
  const result = view([...services, ...more], ['10.96.0.0/16', 'fd00:96::/64'])
  result.node = thisNode({ addresses: [...addresses.node, ...addresses.otherNodeAddress] })
  return result
}

export type Expected =
  | 'rejected'
  | 'dropped'
  | 'passed'
  | { readonly to: readonly Name[]; readonly masqueraded?: boolean }

export interface Case {
  /** What it shows, with the row of the checklist. */
  readonly shows: string
  readonly from: 'client' | 'podA1' | 'podA2' | 'node'
  readonly to: Name
  readonly port: number
  readonly protocol?: Protocol
  readonly expected: Expected
}

export const cases: readonly Case[] = [
  {
    shows: 'a pod reaches a cluster IP under its own address (13)',
    from: 'podA2',
    to: 'web',
    port: 80,
    expected: { to: ['podA1', 'podB1'], masqueraded: false },
  },
  {
    shows: 'a client from outside is masqueraded on the way to a cluster IP (60)',
    from: 'client',
    to: 'web',
    port: 80,
    expected: { to: ['podA1', 'podB1'], masqueraded: true },
  },
  {
    shows: 'the node reaches a cluster IP (13)',
    from: 'node',
    to: 'web',
    port: 80,
    expected: { to: ['podA1', 'podB1'] },
  },
  { shows: 'UDP (52)', from: 'podA2', to: 'web', port: 53, protocol: 'udp', expected: { to: ['podA1', 'podB1'] } },
  {
    shows: 'the same port of another protocol is another port (18)',
    from: 'podA2',
    to: 'web',
    port: 53,
    expected: 'rejected',
  },
  { shows: 'other ports of a cluster IP are refused (14)', from: 'podA1', to: 'web', port: 81, expected: 'rejected' },
  {
    shows: 'other ports of a cluster IP are refused to the node (14)',
    from: 'node',
    to: 'web',
    port: 81,
    expected: 'rejected',
  },
  {
    shows: 'an unallocated cluster IP is dropped (9)',
    from: 'podA1',
    to: 'unallocated',
    port: 80,
    expected: 'dropped',
  },
  { shows: 'no endpoints at all: refused (20)', from: 'podA1', to: 'empty', port: 80, expected: 'rejected' },
  {
    shows: 'no endpoints at all, UDP: refused (20)',
    from: 'podA1',
    to: 'empty',
    port: 53,
    protocol: 'udp',
    expected: 'rejected',
  },
  {
    shows: 'no endpoints at all, external IP: refused (20)',
    from: 'client',
    to: 'emptyExternal',
    port: 80,
    expected: 'rejected',
  },
  {
    shows: 'no endpoints at all, node port: refused (20)',
    from: 'client',
    to: 'node',
    port: 30082,
    expected: 'rejected',
  },
  {
    shows: 'internal policy Local, none here: dropped (32)',
    from: 'podA1',
    to: 'notHere',
    port: 80,
    expected: 'dropped',
  },
  { shows: 'hairpin (21)', from: 'podA1', to: 'solo', port: 80, expected: { to: ['podA1'], masqueraded: true } },
  { shows: 'not a hairpin (21)', from: 'podA2', to: 'solo', port: 80, expected: { to: ['podA1'], masqueraded: false } },
  {
    shows: "a cluster IP stays its service's, even if another one lists it as an external or load-balancer IP (17)",
    from: 'client',
    to: 'solo',
    port: 80,
    expected: { to: ['podA1'], masqueraded: true },
  },
  {
    shows: 'external IP, policy Cluster (17, 35)',
    from: 'client',
    to: 'exposedExternal',
    port: 80,
    expected: { to: ['podA1', 'podB1'], masqueraded: true },
  },
  {
    shows: 'load-balancer IP, policy Cluster (16, 35)',
    from: 'client',
    to: 'exposedLb',
    port: 80,
    expected: { to: ['podA1', 'podB1'], masqueraded: true },
  },
  {
    shows: 'node port, policy Cluster (15, 35)',
    from: 'client',
    to: 'node',
    port: 30080,
    expected: { to: ['podA1', 'podB1'], masqueraded: true },
  },
  {
    shows: 'node port, UDP (15, 52)',
    from: 'client',
    to: 'node',
    port: 30053,
    protocol: 'udp',
    expected: { to: ['podA1', 'podB1'], masqueraded: true },
  },
  {
    shows: 'node port from the node itself (15)',
    from: 'node',
    to: 'node',
    port: 30080,
    expected: { to: ['podA1', 'podB1'] },
  },
  {
    shows: 'node port from a pod (15)',
    from: 'podA2',
    to: 'node',
    port: 30080,
    expected: { to: ['podA1', 'podB1'], masqueraded: true },
  },
  {
    shows: 'node ports only on the primary address (40)',
    from: 'client',
    to: 'otherNodeAddress',
    port: 30080,
    expected: 'passed',
  },
  {
    shows: 'load-balancer IP, policy Local, from outside (33)',
    from: 'client',
    to: 'localLb',
    port: 80,
    expected: { to: ['podA1'], masqueraded: false },
  },
  {
    shows: 'node port, policy Local, from outside (33)',
    from: 'client',
    to: 'node',
    port: 30081,
    expected: { to: ['podA1'], masqueraded: false },
  },
  {
    shows: 'load-balancer IP, policy Local, from a pod: short circuit (34)',
    from: 'podA2',
    to: 'localLb',
    port: 80,
    expected: { to: ['podA1', 'podB1'], masqueraded: false },
  },
  {
    shows: 'load-balancer IP, policy Local, from the node: short circuit (34)',
    from: 'node',
    to: 'localLb',
    port: 80,
    expected: { to: ['podA1', 'podB1'] },
  },
  {
    shows: 'node port, policy Local, from the node: short circuit (34)',
    from: 'node',
    to: 'node',
    port: 30081,
    expected: { to: ['podA1', 'podB1'] },
  },
  {
    shows: 'policy Local, none here, from outside: dropped (33)',
    from: 'client',
    to: 'localNotHereLb',
    port: 80,
    expected: 'dropped',
  },
  {
    shows: 'node port, policy Local, none here, from outside: dropped (33)',
    from: 'client',
    to: 'node',
    port: 30083,
    expected: 'dropped',
  },
  {
    shows: 'policy Local, none here, from a pod: short circuit (34)',
    from: 'podA1',
    to: 'localNotHereLb',
    port: 80,
    expected: { to: ['podB1'], masqueraded: false },
  },
  {
    shows: 'policy Local, none here, from the node: short circuit (34)',
    from: 'node',
    to: 'node',
    port: 30083,
    expected: { to: ['podB1'] },
  },
  {
    shows: 'policy Local, from a core that does not know the cluster scope, from outside (33)',
    from: 'client',
    to: 'goLocalLb',
    port: 80,
    expected: { to: ['podA1'], masqueraded: false },
  },
  {
    shows: 'policy Local, from a core that does not know the cluster scope, from a pod (34)',
    from: 'podA2',
    to: 'goLocalLb',
    port: 80,
    expected: { to: ['podA1'], masqueraded: false },
  },
  {
    shows: 'policy Local, from a core that does not know the cluster scope, from the node (34)',
    from: 'node',
    to: 'goLocalLb',
    port: 80,
    expected: { to: ['podA1'] },
  },
  {
    shows: 'a source in the ranges (45)',
    from: 'client',
    to: 'openLb',
    port: 80,
    expected: { to: ['podA1'], masqueraded: true },
  },
  { shows: 'a pod that is not in the ranges (45)', from: 'podA2', to: 'openLb', port: 80, expected: 'dropped' },
  {
    shows: 'the node, when it is in the ranges (46)',
    from: 'node',
    to: 'openLb',
    port: 80,
    expected: { to: ['podA1'] },
  },
  { shows: 'a source that is not in the ranges (45)', from: 'client', to: 'closedLb', port: 80, expected: 'dropped' },
  {
    shows: 'a filter of which no range could be read lets nobody in (45)',
    from: 'client',
    to: 'shutLb',
    port: 80,
    expected: 'dropped',
  },
  {
    shows: 'a filter of which no range could be read lets no pod in either (45)',
    from: 'podA2',
    to: 'shutLb',
    port: 80,
    expected: 'dropped',
  },
  {
    shows: 'source ranges are not for node ports (45)',
    from: 'client',
    to: 'node',
    port: 30084,
    expected: { to: ['podA1'], masqueraded: true },
  },
  {
    shows: 'source ranges are not for cluster IPs (45)',
    from: 'podA2',
    to: 'ranges',
    port: 80,
    expected: { to: ['podA1'], masqueraded: false },
  },
  {
    shows: 'a service with affinity (37)',
    from: 'podA2',
    to: 'sticky',
    port: 80,
    expected: { to: ['podA1', 'podA2', 'podB1'] },
  },
]
