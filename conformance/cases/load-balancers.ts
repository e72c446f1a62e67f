import { families } from '@kpng/api'
import { addressOf, clusterIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, passed, reaches, tcp, udp } from './cells.js'
import { type ServicePort, served, tcpPort, udpPort } from './objects.js'

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']
const outsideRanges = ['203.0.113.0/24', '2001:db8:113::/64']

interface Balancer {
  readonly spec?: object
  readonly ipMode?: string
  readonly ports?: readonly ServicePort[]
}

const balancer = (name: string, number: number, { spec = {}, ipMode, ports }: Balancer = {}): KubernetesObject[] =>
  served(name, number, ['a1', 'b1'], {
    ports: ports ?? [
      tcpPort(80, { name: 'tcp', nodePort: nodePort(number) }),
      udpPort(80, { name: 'udp', nodePort: nodePort(number) }),
    ],
    spec: { type: 'LoadBalancer', ...spec },
    ingress: families.map((family) => ({ ip: loadBalancerIp(number)[family], ...(ipMode && { ipMode }) })),
  })

const modes: readonly Case[] = [
  {
    id: 'load-balancer-vip',
    title: 'A load-balancer IP with ipMode VIP is served; its other ports are left alone',
    steps: [
      {
        after: 'start',
        objects: balancer('lb-vip', 70, { ipMode: 'VIP' }),
        cells: inFamilies([
          {
            id: 'outside',
            client: 'outside',
            to: tcp(loadBalancerIp(70), 80),
            expect: masqueraded(both),
            rows: [16, 47],
          },
          { id: 'pod-a', client: 'pod-a', to: tcp(loadBalancerIp(70), 80), expect: masqueraded(both), rows: [16, 47] },
          { id: 'other-port', client: 'outside', to: tcp(loadBalancerIp(70), 81), expect: passed, rows: [16] },
        ]),
      },
    ],
  },
  {
    id: 'load-balancer-proxy',
    title: 'A load-balancer IP with ipMode Proxy is left to the load balancer; everything else is served',
    steps: [
      {
        after: 'start',
        objects: balancer('lb-proxy', 71, { ipMode: 'Proxy' }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(loadBalancerIp(71), 80), expect: passed, rows: [47] },
          { id: 'pod-a', client: 'pod-a', to: tcp(loadBalancerIp(71), 80), expect: passed, rows: [47] },
          {
            id: 'pod-a-cluster-ip',
            client: 'pod-a',
            to: tcp(clusterIp(71), 80),
            expect: keepsSource(both),
            rows: [47],
          },
          {
            id: 'outside-node-port',
            client: 'outside',
            to: tcp(nodeA, nodePort(71)),
            expect: masqueraded(both),
            rows: [47],
          },
        ]),
      },
    ],
  },
  {
    id: 'load-balancer-without-node-port',
    title: 'A load balancer without node ports is served at its IP',
    steps: [
      {
        after: 'start',
        objects: balancer('lb-no-node-port', 76, {
          spec: { allocateLoadBalancerNodePorts: false },
          ports: [tcpPort(80)],
        }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(loadBalancerIp(76), 80), expect: masqueraded(both), rows: [48] },
        ]),
      },
    ],
  },
]

const ranges: readonly Case[] = [
  {
    id: 'source-ranges',
    title: 'Clients outside the source ranges are dropped at the load-balancer IP, and only there',
    steps: [
      {
        after: 'start',
        objects: balancer('source-ranges', 72, {
          spec: { loadBalancerSourceRanges: [...outsideRanges, '172.30.0.1/32', 'fd00:30::1/128'] },
        }),
        cells: inFamilies([
          { id: 'in', client: 'outside', to: tcp(loadBalancerIp(72), 80), expect: masqueraded(both), rows: [45] },
          { id: 'in-udp', client: 'outside', to: udp(loadBalancerIp(72), 80), expect: masqueraded(both), rows: [45] },
          {
            id: 'node-itself',
            client: 'node-a',
            to: tcp(loadBalancerIp(72), 80),
            expect: masqueraded(both),
            rows: [46],
          },
          { id: 'out', client: 'node-b', to: tcp(loadBalancerIp(72), 80), expect: dropped, rows: [45] },
          { id: 'out-udp', client: 'node-b', to: udp(loadBalancerIp(72), 80), expect: dropped, rows: [45] },
          { id: 'out-pod', client: 'pod-a', to: tcp(loadBalancerIp(72), 80), expect: dropped, rows: [45] },
          {
            id: 'out-node-port',
            client: 'node-b',
            to: tcp(nodeA, nodePort(72)),
            expect: masqueraded(both),
            rows: [45],
          },
          { id: 'out-cluster-ip', client: 'pod-a', to: tcp(clusterIp(72), 80), expect: keepsSource(both), rows: [45] },
        ]),
      },
    ],
  },
  {
    id: 'source-ranges-without-node',
    title: 'A node that is not in the source ranges is dropped too',
    steps: [
      {
        after: 'start',
        objects: balancer('source-ranges-no-node', 73, { spec: { loadBalancerSourceRanges: outsideRanges } }),
        cells: inFamilies([
          { id: 'in', client: 'outside', to: tcp(loadBalancerIp(73), 80), expect: masqueraded(both), rows: [45] },
          { id: 'node-itself', client: 'node-a', to: tcp(loadBalancerIp(73), 80), expect: dropped, rows: [45, 46] },
        ]),
      },
    ],
  },
  {
    id: 'source-ranges-and-local',
    title: 'Source ranges and externalTrafficPolicy Local go together',
    steps: [
      {
        after: 'start',
        objects: balancer('source-ranges-local', 78, {
          spec: { loadBalancerSourceRanges: outsideRanges, externalTrafficPolicy: 'Local' },
        }),
        cells: inFamilies([
          { id: 'in', client: 'outside', to: tcp(loadBalancerIp(78), 80), expect: keepsSource(['a1']), rows: [33, 45] },
          { id: 'out', client: 'node-b', to: tcp(loadBalancerIp(78), 80), expect: dropped, rows: [45] },
        ]),
      },
    ],
  },
  {
    id: 'source-ranges-everyone',
    title: 'A source range of everyone lets everyone in',
    steps: [
      {
        after: 'start',
        objects: balancer('source-ranges-all', 74, { spec: { loadBalancerSourceRanges: ['0.0.0.0/0', '::/0'] } }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(loadBalancerIp(74), 80), expect: reaches(both), rows: [45] },
          { id: 'pod-a', client: 'pod-a', to: tcp(loadBalancerIp(74), 80), expect: reaches(both), rows: [45] },
        ]),
      },
    ],
  },
  {
    id: 'source-ranges-with-spaces',
    title: 'Spaces around a source range are no part of it',
    manifestsOnly: 'an API server may refuse source ranges with spaces',
    steps: [
      {
        after: 'start',
        objects: balancer('source-ranges-spaces', 75, {
          spec: { loadBalancerSourceRanges: outsideRanges.map((range) => `  ${range} `) },
        }),
        cells: inFamilies([
          { id: 'in', client: 'outside', to: tcp(loadBalancerIp(75), 80), expect: masqueraded(both), rows: [11, 45] },
          { id: 'out', client: 'node-b', to: tcp(loadBalancerIp(75), 80), expect: dropped, rows: [11, 45] },
        ]),
      },
    ],
  },
]

export const loadBalancerCases: readonly Case[] = [...modes, ...ranges]
