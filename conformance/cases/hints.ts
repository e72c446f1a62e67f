import { clusterIp, loadBalancerIp, nodePort, type Server } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, oneStep, tcp } from './cells.js'
import { balanced, type EndpointOptions, served, tcpPort } from './objects.js'

const forZones = (server: Server, ...zones: readonly string[]): EndpointOptions => ({
  server,
  conditions: { ready: true },
  forZones: zones,
})
const forNode = (server: Server, node: string): EndpointOptions => ({
  server,
  conditions: { ready: true },
  forNodes: [node],
})

function hinted(
  id: string,
  title: string,
  number: number,
  endpoints: readonly (Server | EndpointOptions)[],
  servers: readonly string[],
  rows: readonly number[],
): Case {
  return oneStep({
    id,
    title,
    objects: served(id, number, endpoints, { ports: [tcpPort(80)] }),
    cells: [['pod-a', 'pod-a', tcp(clusterIp(number), 80), keepsSource(servers), rows]],
  })
}

const hintsAndLocal: Case = oneStep({
  id: 'hints-and-local-policy',
  title: 'Hints do not narrow the local set',
  objects: balanced('hints-and-local-policy', 36, [forZones('a1', 'zone-2'), forZones('b1', 'zone-1')], {
    ports: [tcpPort(80, { nodePort: nodePort(36) })],
    spec: { externalTrafficPolicy: 'Local' },
  }),
  cells: [
    ['outside', 'outside', tcp(loadBalancerIp(36), 80), keepsSource(['a1']), [27, 33]],
    ['pod-a', 'pod-a', tcp(clusterIp(36), 80), keepsSource(['b1']), [27]],
  ],
})

export const hintCases: readonly Case[] = [
  hinted(
    'zone-hints',
    'With zone hints on every endpoint, those for this zone are used',
    30,
    [forZones('a1', 'zone-1'), forZones('b1', 'zone-2')],
    ['a1'],
    [27],
  ),
  hinted(
    'zone-hints-elsewhere',
    "A hint may send this zone's traffic to a pod of another",
    37,
    [forZones('a1', 'zone-2'), forZones('b1', 'zone-1', 'zone-3')],
    ['b1'],
    [27],
  ),
  hinted(
    'zone-hints-incomplete',
    'With an endpoint without hints, all are used',
    31,
    [forZones('a1', 'zone-1'), 'b1'],
    ['a1', 'b1'],
    [27],
  ),
  hinted(
    'zone-hints-for-others',
    'With no hint for this zone, all are used',
    32,
    [forZones('a1', 'zone-2'), forZones('b1', 'zone-3')],
    ['a1', 'b1'],
    [27],
  ),
  hinted(
    'node-hints',
    'With node hints on every endpoint, those for this node are used',
    33,
    [forNode('a1', 'node-a'), forNode('b1', 'node-b')],
    ['a1'],
    [28],
  ),
  hinted(
    'node-hints-before-zones',
    'Node hints are tried before zone hints',
    34,
    [
      { ...forNode('a1', 'node-a'), forZones: ['zone-1'] },
      { ...forNode('a2', 'node-b'), forZones: ['zone-1'] },
    ],
    ['a1'],
    [28, 29],
  ),
  hinted(
    'node-hints-then-zones',
    'With no node hint for this node, zone hints are used',
    35,
    [
      { ...forNode('a1', 'node-b'), forZones: ['zone-1'] },
      { ...forNode('b1', 'node-b'), forZones: ['zone-2'] },
    ],
    ['a1'],
    [28, 29],
  ),
  {
    id: 'node-hints-fall-back',
    title: 'When the endpoint of this node becomes unready, its node hint no longer counts and others are used',
    steps: [true, false, true].map((ready) => ({
      after: ready ? 'it is ready' : 'it is unready',
      objects: served(
        'node-hints-fall-back',
        185,
        [{ ...forNode('a1', 'node-a'), conditions: { ready } }, forNode('b1', 'node-b')],
        { ports: [tcpPort(80)] },
      ),
      cells: inFamilies([['pod-a', 'pod-a', tcp(clusterIp(185), 80), keepsSource([ready ? 'a1' : 'b1']), [28, 29]]]),
    })),
  },
  hintsAndLocal,
]
