import { families } from '@kpng/api'
import { addressOf, clusterIp, externalIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { type CellSpec, inFamilies, keepsSource, refused, tcp, udp } from './cells.js'
import { type EndpointOptions, served, service, tcpPort, udpPort } from './objects.js'

const terminating = { ready: false, serving: true, terminating: true }
const gone = { ready: false, serving: false, terminating: true }

/** A case of one Service, asked at its cluster IP. */
function selection(
  id: string,
  title: string,
  number: number,
  endpoints: readonly ('a1' | 'a2' | 'b1' | EndpointOptions)[],
  expect: CellSpec['expect'],
  rows: readonly number[],
): Case {
  const cells = inFamilies([
    { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(number), 80), expect, rows },
    { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(number), 80), expect, rows },
  ])
  const ports = [tcpPort(80, { name: 'tcp' }), udpPort(80, { name: 'udp' })]
  return { id, title, steps: [{ after: 'start', objects: served(id, number, endpoints, { ports }), cells }] }
}

const noEndpoints: Case = {
  id: 'no-endpoints',
  title: 'A Service without endpoints refuses, at each of its addresses',
  steps: [
    {
      after: 'start',
      objects: [
        service('no-endpoints', 5, {
          ports: [
            tcpPort(80, { name: 'tcp', nodePort: nodePort(5) }),
            udpPort(80, { name: 'udp', nodePort: nodePort(5) }),
          ],
          spec: { type: 'LoadBalancer', externalIPs: families.map((family) => externalIp(5)[family]) },
          ingress: families.map((family) => ({ ip: loadBalancerIp(5)[family] })),
        }),
      ],
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(5), 80), expect: refused, rows: [20] },
        { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(5), 80), expect: refused, rows: [20] },
        { id: 'node-a', client: 'node-a', to: tcp(clusterIp(5), 80), expect: refused, rows: [20] },
        { id: 'node-a-udp', client: 'node-a', to: udp(clusterIp(5), 80), expect: refused, rows: [20] },
        { id: 'outside-cluster-ip', client: 'outside', to: tcp(clusterIp(5), 80), expect: refused, rows: [20] },
        { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(5), 80), expect: refused, rows: [20] },
        {
          id: 'outside-load-balancer-udp',
          client: 'outside',
          to: udp(loadBalancerIp(5), 80),
          expect: refused,
          rows: [20],
        },
        { id: 'outside-external-ip', client: 'outside', to: tcp(externalIp(5), 80), expect: refused, rows: [20] },
        {
          id: 'outside-node-port',
          client: 'outside',
          to: tcp(addressOf['node-a'], nodePort(5)),
          expect: refused,
          rows: [20],
        },
        {
          id: 'outside-node-port-udp',
          client: 'outside',
          to: udp(addressOf['node-a'], nodePort(5)),
          expect: refused,
          rows: [20],
        },
        { id: 'pod-a-load-balancer', client: 'pod-a', to: tcp(loadBalancerIp(5), 80), expect: refused, rows: [20] },
      ]),
    },
  ],
}

const terminatingLocal: Case = {
  id: 'terminating-local',
  title: 'The local set falls back to terminating endpoints by itself, while the cluster-wide set has ready ones',
  steps: [
    {
      after: 'start',
      objects: served('terminating-local', 16, [{ server: 'a1', conditions: terminating }, 'b1'], {
        ports: [tcpPort(80, { nodePort: nodePort(16) })],
        spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
        ingress: families.map((family) => ({ ip: loadBalancerIp(16)[family] })),
      }),
      cells: inFamilies([
        {
          id: 'outside',
          client: 'outside',
          to: tcp(loadBalancerIp(16), 80),
          expect: keepsSource(['a1']),
          rows: [25, 33],
        },
        {
          id: 'outside-node-port',
          client: 'outside',
          to: tcp(addressOf['node-a'], nodePort(16)),
          expect: keepsSource(['a1']),
          rows: [25, 33],
        },
        {
          id: 'pod-a-cluster-ip',
          client: 'pod-a',
          to: tcp(clusterIp(16), 80),
          expect: keepsSource(['b1']),
          rows: [25],
        },
        { id: 'pod-a', client: 'pod-a', to: tcp(loadBalancerIp(16), 80), expect: keepsSource(['b1']), rows: [25, 34] },
      ]),
    },
  ],
}

export const endpointCases: readonly Case[] = [
  noEndpoints,
  selection(
    'not-ready',
    'An endpoint that is not ready is not used',
    10,
    ['a1', { server: 'b1', conditions: { ready: false } }],
    keepsSource(['a1']),
    [24],
  ),
  selection(
    'none-ready',
    'With no ready endpoint a Service refuses',
    11,
    [{ server: 'a1', conditions: { ready: false, serving: false } }],
    refused,
    [20, 24],
  ),
  selection(
    'conditions-unset',
    'An endpoint without conditions is ready',
    12,
    [{ server: 'a1' }, { server: 'b1', conditions: {} }],
    keepsSource(['a1', 'b1']),
    [23],
  ),
  selection(
    'terminating',
    'A terminating endpoint is not used while another is ready',
    13,
    ['a1', { server: 'b1', conditions: terminating }],
    keepsSource(['a1']),
    [25],
  ),
  selection(
    'terminating-fallback',
    'Terminating endpoints that serve stand in when none is ready',
    14,
    [
      { server: 'a1', conditions: terminating },
      { server: 'b1', conditions: terminating },
      { server: 'a2', conditions: gone },
    ],
    keepsSource(['a1', 'b1']),
    [25],
  ),
  selection(
    'terminating-not-serving',
    'Terminating endpoints that no longer serve do not stand in',
    15,
    [{ server: 'a1', conditions: gone }],
    refused,
    [20, 25],
  ),
  selection(
    'published-not-ready',
    'An endpoint that is ready and terminating, as published not-ready addresses are, is used',
    20,
    [{ server: 'a1', conditions: { ready: true, serving: false, terminating: true } }],
    keepsSource(['a1']),
    [26],
  ),
  terminatingLocal,
]
