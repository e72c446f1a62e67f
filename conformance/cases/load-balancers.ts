import { clusterIp, ipsOf, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, keepsSource, masqueraded, oneStep, passed, reaches, tcp, udp } from './cells.js'
import { balanced, both, tcpPort } from './objects.js'

const outsideRanges = ['203.0.113.0/24', '2001:db8:113::/64']

const ingressOf = (number: number, ipMode: string) => ipsOf(loadBalancerIp(number)).map((ip) => ({ ip, ipMode }))

const modes: readonly Case[] = [
  oneStep({
    id: 'load-balancer-vip',
    title: 'A load-balancer IP with ipMode VIP is served; its other ports are left alone',
    objects: balanced('lb-vip', 70, both, { ingress: ingressOf(70, 'VIP') }),
    cells: [
      ['outside', 'outside', tcp(loadBalancerIp(70), 80), masqueraded(both), [16, 47]],
      ['pod-a', 'pod-a', tcp(loadBalancerIp(70), 80), masqueraded(both), [16, 47]],
      ['other-port', 'outside', tcp(loadBalancerIp(70), 81), passed, [16]],
    ],
  }),
  oneStep({
    id: 'load-balancer-proxy',
    title: 'A load-balancer IP with ipMode Proxy is left to the load balancer; everything else is served',
    objects: balanced('lb-proxy', 71, both, { ingress: ingressOf(71, 'Proxy') }),
    cells: [
      ['outside', 'outside', tcp(loadBalancerIp(71), 80), passed, [47]],
      ['pod-a', 'pod-a', tcp(loadBalancerIp(71), 80), passed, [47]],
      ['pod-a-cluster-ip', 'pod-a', tcp(clusterIp(71), 80), keepsSource(both), [47]],
      ['outside-node-port', 'outside', tcp(nodeA, nodePort(71)), masqueraded(both), [47]],
    ],
  }),
  oneStep({
    id: 'load-balancer-without-node-port',
    title: 'A load balancer without node ports is served at its IP',
    objects: balanced('lb-no-node-port', 76, both, {
      spec: { allocateLoadBalancerNodePorts: false },
      ports: [tcpPort(80)],
    }),
    cells: [['outside', 'outside', tcp(loadBalancerIp(76), 80), masqueraded(both), [48]]],
  }),
]

const ranges: readonly Case[] = [
  oneStep({
    id: 'source-ranges',
    title: 'Clients outside the source ranges are dropped at the load-balancer IP, and only there',
    objects: balanced('source-ranges', 72, both, {
      spec: { loadBalancerSourceRanges: [...outsideRanges, '172.30.0.1/32', 'fd00:30::1/128'] },
    }),
    cells: [
      ['in', 'outside', tcp(loadBalancerIp(72), 80), masqueraded(both), [45]],
      ['in-udp', 'outside', udp(loadBalancerIp(72), 80), masqueraded(both), [45]],
      ['node-itself', 'node-a', tcp(loadBalancerIp(72), 80), masqueraded(both), [46]],
      ['out', 'node-b', tcp(loadBalancerIp(72), 80), dropped, [45]],
      ['out-udp', 'node-b', udp(loadBalancerIp(72), 80), dropped, [45]],
      ['out-pod', 'pod-a', tcp(loadBalancerIp(72), 80), dropped, [45]],
      ['out-node-port', 'node-b', tcp(nodeA, nodePort(72)), masqueraded(both), [45]],
      ['out-cluster-ip', 'pod-a', tcp(clusterIp(72), 80), keepsSource(both), [45]],
    ],
  }),
  oneStep({
    id: 'source-ranges-without-node',
    title: 'A node that is not in the source ranges is dropped too',
    objects: balanced('source-ranges-no-node', 73, both, { spec: { loadBalancerSourceRanges: outsideRanges } }),
    cells: [
      ['in', 'outside', tcp(loadBalancerIp(73), 80), masqueraded(both), [45]],
      ['node-itself', 'node-a', tcp(loadBalancerIp(73), 80), dropped, [45, 46]],
    ],
  }),
  oneStep({
    id: 'source-ranges-and-local',
    title: 'Source ranges and externalTrafficPolicy Local go together',
    objects: balanced('source-ranges-local', 78, both, {
      spec: { loadBalancerSourceRanges: outsideRanges, externalTrafficPolicy: 'Local' },
    }),
    cells: [
      ['in', 'outside', tcp(loadBalancerIp(78), 80), keepsSource(['a1']), [33, 45]],
      ['out', 'node-b', tcp(loadBalancerIp(78), 80), dropped, [45]],
    ],
  }),
  oneStep({
    id: 'source-ranges-everyone',
    title: 'A source range of everyone lets everyone in',
    objects: balanced('source-ranges-all', 74, both, {
      spec: { loadBalancerSourceRanges: ['0.0.0.0/0', '::/0'] },
    }),
    cells: [
      ['outside', 'outside', tcp(loadBalancerIp(74), 80), reaches(both), [45]],
      ['pod-a', 'pod-a', tcp(loadBalancerIp(74), 80), reaches(both), [45]],
    ],
  }),
  oneStep({
    id: 'source-ranges-with-spaces',
    title: 'Spaces around a source range are no part of it',
    manifestsOnly: 'an API server may refuse source ranges with spaces',
    objects: balanced('source-ranges-spaces', 75, both, {
      spec: { loadBalancerSourceRanges: outsideRanges.map((range) => `  ${range} `) },
    }),
    cells: [
      ['in', 'outside', tcp(loadBalancerIp(75), 80), masqueraded(both), [11, 45]],
      ['out', 'node-b', tcp(loadBalancerIp(75), 80), dropped, [11, 45]],
    ],
  }),
]

export const loadBalancerCases: readonly Case[] = [...modes, ...ranges]
