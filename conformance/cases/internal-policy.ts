import { addressOf, clusterIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, refused, tcp, udp } from './cells.js'
import { exposed } from './exposed.js'
import { served, tcpPort, udpPort } from './objects.js'

const nodeA = addressOf['node-a']

export const internalPolicyCases: readonly Case[] = [
  {
    id: 'internal-local',
    title: 'internalTrafficPolicy Local: only endpoints of this node',
    steps: [
      {
        after: 'start',
        objects: served('internal-local', 40, ['a1', 'b1'], {
          ports: [tcpPort(80, { name: 'tcp' }), udpPort(80, { name: 'udp' })],
          spec: { internalTrafficPolicy: 'Local' },
        }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(40), 80), expect: keepsSource(['a1']), rows: [31, 32] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(40), 80), expect: keepsSource(['a1']), rows: [32] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(40), 80), expect: masqueraded(['a1']), rows: [32] },
        ]),
      },
    ],
  },
  {
    id: 'internal-local-none-here',
    title: 'internalTrafficPolicy Local without an endpoint on this node: dropped; other ways in are not affected',
    steps: [
      {
        after: 'start',
        objects: exposed('internal-local-none', 41, ['b1'], { spec: { internalTrafficPolicy: 'Local' } }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(41), 80), expect: dropped, rows: [32] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(41), 80), expect: dropped, rows: [32] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(41), 80), expect: dropped, rows: [32] },
          {
            id: 'outside-node-port',
            client: 'outside',
            to: tcp(nodeA, nodePort(41)),
            expect: masqueraded(['b1']),
            rows: [32, 35],
          },
        ]),
      },
    ],
  },
  {
    id: 'internal-local-none-anywhere',
    title: 'internalTrafficPolicy Local without any endpoint: refused',
    steps: [
      {
        after: 'start',
        objects: served('internal-local-nothing', 42, [], {
          ports: [tcpPort(80)],
          spec: { internalTrafficPolicy: 'Local' },
        }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(42), 80), expect: refused, rows: [20, 32] },
        ]),
      },
    ],
  },
]
