import { clusterIp, externalIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case, Expectation } from './case.js'
import { keepsSource, masqueraded, oneStep, refused, tcp, udp } from './cells.js'
import { balanced, both, type EndpointList, exposed, served, tcpAndUdp, tcpPort } from './objects.js'

const terminating = { ready: false, serving: true, terminating: true }
const gone = { ready: false, serving: false, terminating: true }

/** A case of one Service, asked at its cluster IP. */
function selection(
  id: string,
  title: string,
  number: number,
  endpoints: EndpointList,
  expect: Expectation,
  rows: readonly number[],
): Case {
  return oneStep({
    id,
    title,
    objects: served(id, number, endpoints, { ports: tcpAndUdp() }),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(number), 80), expect, rows],
      ['pod-a-udp', 'pod-a', udp(clusterIp(number), 80), expect, rows],
    ],
  })
}

const noEndpoints: Case = oneStep({
  id: 'no-endpoints',
  title: 'A Service without endpoints refuses, at each of its addresses',
  objects: exposed('no-endpoints', 5, []).filter(({ kind }) => kind === 'Service'),
  cells: [
    ['pod-a', 'pod-a', tcp(clusterIp(5), 80), refused, [20]],
    ['pod-a-udp', 'pod-a', udp(clusterIp(5), 80), refused, [20]],
    ['node-a', 'node-a', tcp(clusterIp(5), 80), refused, [20]],
    ['node-a-udp', 'node-a', udp(clusterIp(5), 80), refused, [20]],
    ['outside-cluster-ip', 'outside', tcp(clusterIp(5), 80), refused, [20]],
    ['outside-load-balancer', 'outside', tcp(loadBalancerIp(5), 80), refused, [20]],
    ['outside-load-balancer-udp', 'outside', udp(loadBalancerIp(5), 80), refused, [20]],
    ['outside-external-ip', 'outside', tcp(externalIp(5), 80), refused, [20]],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(5)), refused, [20]],
    ['outside-node-port-udp', 'outside', udp(nodeA, nodePort(5)), refused, [20]],
    ['pod-a-load-balancer', 'pod-a', tcp(loadBalancerIp(5), 80), refused, [20]],
  ],
})

const terminatingLocal: Case = oneStep({
  id: 'terminating-local',
  title: 'The local set falls back to terminating endpoints by itself, while the cluster-wide set has ready ones',
  objects: balanced('terminating-local', 16, [{ server: 'a1', conditions: terminating }, 'b1'], {
    ports: [tcpPort(80, { nodePort: nodePort(16) })],
    spec: { externalTrafficPolicy: 'Local' },
  }),
  cells: [
    ['outside', 'outside', tcp(loadBalancerIp(16), 80), keepsSource(['a1']), [25, 33]],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(16)), keepsSource(['a1']), [25, 33]],
    ['pod-a-cluster-ip', 'pod-a', tcp(clusterIp(16), 80), keepsSource(['b1']), [25]],
    ['pod-a', 'pod-a', tcp(loadBalancerIp(16), 80), keepsSource(['b1']), [25, 34]],
  ],
})

const terminatingEverywhere: Case = oneStep({
  id: 'terminating-from-outside',
  title: 'Terminating endpoints that serve stand in for clients from outside, too, when none is ready',
  objects: balanced(
    'terminating-from-outside',
    192,
    both.map((server) => ({ server, conditions: terminating })),
  ),
  cells: [
    ['load-balancer', 'outside', tcp(loadBalancerIp(192), 80), masqueraded(both), [25, 35]],
    ['node-port', 'outside', tcp(nodeA, nodePort(192)), masqueraded(both), [25, 35]],
  ],
})

const terminatingInternalLocal: Case = oneStep({
  id: 'terminating-internal-local',
  title:
    'internalTrafficPolicy Local: a terminating endpoint of this node stands in, though others are ready elsewhere',
  objects: served('terminating-internal-local', 193, [{ server: 'a1', conditions: terminating }, 'b1'], {
    ports: tcpAndUdp(),
    spec: { internalTrafficPolicy: 'Local' },
  }),
  cells: [
    ['pod-a', 'pod-a', tcp(clusterIp(193), 80), keepsSource(['a1']), [25, 32]],
    ['pod-a-udp', 'pod-a', udp(clusterIp(193), 80), keepsSource(['a1']), [25, 32]],
  ],
})

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
  terminatingEverywhere,
  terminatingInternalLocal,
]
