import { families } from '@kpng/api'
import { clusterIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, tcp } from './cells.js'
import { type EndpointOptions, served, tcpPort } from './objects.js'

function hinted(
  id: string,
  title: string,
  number: number,
  endpoints: readonly EndpointOptions[],
  servers: readonly string[],
  rows: readonly number[],
): Case {
  return {
    id,
    title,
    steps: [
      {
        after: 'start',
        objects: served(
          id,
          number,
          endpoints.map((endpoint) => ({ conditions: { ready: true }, ...endpoint })),
          { ports: [tcpPort(80)] },
        ),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(number), 80), expect: keepsSource(servers), rows },
        ]),
      },
    ],
  }
}

const hintsAndLocal: Case = {
  id: 'hints-and-local-policy',
  title: 'Hints do not narrow the local set',
  steps: [
    {
      after: 'start',
      objects: served(
        'hints-and-local-policy',
        36,
        [
          { server: 'a1', conditions: { ready: true }, forZones: ['zone-2'] },
          { server: 'b1', conditions: { ready: true }, forZones: ['zone-1'] },
        ],
        {
          ports: [tcpPort(80, { nodePort: nodePort(36) })],
          spec: { type: 'LoadBalancer', externalTrafficPolicy: 'Local' },
          ingress: families.map((family) => ({ ip: loadBalancerIp(36)[family] })),
        },
      ),
      cells: inFamilies([
        {
          id: 'outside',
          client: 'outside',
          to: tcp(loadBalancerIp(36), 80),
          expect: keepsSource(['a1']),
          rows: [27, 33],
        },
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(36), 80), expect: keepsSource(['b1']), rows: [27] },
      ]),
    },
  ],
}

export const hintCases: readonly Case[] = [
  hinted(
    'zone-hints',
    'With zone hints on every endpoint, those for this zone are used',
    30,
    [
      { server: 'a1', forZones: ['zone-1'] },
      { server: 'b1', forZones: ['zone-2'] },
    ],
    ['a1'],
    [27],
  ),
  hinted(
    'zone-hints-elsewhere',
    "A hint may send this zone's traffic to a pod of another",
    37,
    [
      { server: 'a1', forZones: ['zone-2'] },
      { server: 'b1', forZones: ['zone-1', 'zone-3'] },
    ],
    ['b1'],
    [27],
  ),
  hinted(
    'zone-hints-incomplete',
    'With an endpoint without hints, all are used',
    31,
    [{ server: 'a1', forZones: ['zone-1'] }, { server: 'b1' }],
    ['a1', 'b1'],
    [27],
  ),
  hinted(
    'zone-hints-for-others',
    'With no hint for this zone, all are used',
    32,
    [
      { server: 'a1', forZones: ['zone-2'] },
      { server: 'b1', forZones: ['zone-3'] },
    ],
    ['a1', 'b1'],
    [27],
  ),
  hinted(
    'node-hints',
    'With node hints on every endpoint, those for this node are used',
    33,
    [
      { server: 'a1', forNodes: ['node-a'] },
      { server: 'b1', forNodes: ['node-b'] },
    ],
    ['a1'],
    [28],
  ),
  hinted(
    'node-hints-before-zones',
    'Node hints are tried before zone hints',
    34,
    [
      { server: 'a1', forNodes: ['node-a'], forZones: ['zone-1'] },
      { server: 'a2', forNodes: ['node-b'], forZones: ['zone-1'] },
    ],
    ['a1'],
    [28, 29],
  ),
  hinted(
    'node-hints-then-zones',
    'With no node hint for this node, zone hints are used',
    35,
    [
      { server: 'a1', forNodes: ['node-b'], forZones: ['zone-1'] },
      { server: 'b1', forNodes: ['node-b'], forZones: ['zone-2'] },
    ],
    ['a1'],
    [28, 29],
  ),
  hintsAndLocal,
]
