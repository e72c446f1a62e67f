import { families } from '@kpng/api'
import {
  addressOf,
  clusterIp,
  externalIp,
  loadBalancerIp,
  nodePort,
  ownExternalAddress,
  secondAddress,
} from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, masqueraded, passed, refused, sctp, tcp, udp } from './cells.js'
import { served, tcpPort, udpPort } from './objects.js'

// Node ports, external IPs and SCTP: where a Service can be reached beside its cluster IP.

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']
const localhost = { IPv4: '127.0.0.1', IPv6: '::1' }

const nodePorts: Case = {
  id: 'node-port',
  title: "A node port is served at the node's primary addresses, and nowhere else",
  steps: [
    {
      after: 'start',
      objects: served('node-port', 60, ['a1', 'b1'], {
        ports: [
          tcpPort(80, { name: 'tcp', nodePort: nodePort(60) }),
          udpPort(80, { name: 'udp', nodePort: nodePort(60) }),
        ],
        spec: { type: 'NodePort' },
      }),
      cells: inFamilies([
        { id: 'outside', client: 'outside', to: tcp(nodeA, nodePort(60)), expect: masqueraded(both), rows: [15, 35] },
        {
          id: 'outside-udp',
          client: 'outside',
          to: udp(nodeA, nodePort(60)),
          expect: masqueraded(both),
          rows: [15, 35],
        },
        { id: 'pod-a', client: 'pod-a', to: tcp(nodeA, nodePort(60)), expect: masqueraded(both), rows: [15] },
        { id: 'node-a', client: 'node-a', to: tcp(nodeA, nodePort(60)), expect: masqueraded(both), rows: [15] },
        { id: 'node-a-udp', client: 'node-a', to: udp(nodeA, nodePort(60)), expect: masqueraded(both), rows: [15] },
        { id: 'pod-b', client: 'pod-b', to: tcp(nodeA, nodePort(60)), expect: masqueraded(both), rows: [15] },
        { id: 'node-b', client: 'node-b', to: tcp(nodeA, nodePort(60)), expect: masqueraded(both), rows: [15] },
        { id: 'second-address', client: 'outside', to: tcp(secondAddress, nodePort(60)), expect: refused, rows: [40] },
        {
          id: 'second-address-udp',
          client: 'outside',
          to: udp(secondAddress, nodePort(60)),
          expect: refused,
          rows: [40],
        },
        { id: 'localhost', client: 'node-a', to: tcp(localhost, nodePort(60)), expect: refused, rows: [41] },
        { id: 'on-cluster-ip', client: 'pod-a', to: tcp(clusterIp(60), nodePort(60)), expect: refused, rows: [14, 40] },
        { id: 'service-port-on-node', client: 'outside', to: tcp(nodeA, 80), expect: refused, rows: [15] },
        { id: 'cluster-ip', client: 'pod-a', to: tcp(clusterIp(60), 80), expect: keepsSource(both), rows: [13] },
      ]),
    },
  ],
}

const externalIps: readonly Case[] = [
  {
    id: 'external-ip',
    title: 'An external IP is served like a cluster IP, under the external policy; its other ports are left alone',
    steps: [
      {
        after: 'start',
        objects: served('external-ip', 65, ['a1', 'b1'], {
          ports: [tcpPort(80, { name: 'tcp' }), udpPort(80, { name: 'udp' })],
          spec: { externalIPs: families.map((family) => externalIp(65)[family]) },
        }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(externalIp(65), 80), expect: masqueraded(both), rows: [17] },
          { id: 'outside-udp', client: 'outside', to: udp(externalIp(65), 80), expect: masqueraded(both), rows: [17] },
          { id: 'pod-a', client: 'pod-a', to: tcp(externalIp(65), 80), expect: masqueraded(both), rows: [17] },
          { id: 'node-a', client: 'node-a', to: tcp(externalIp(65), 80), expect: masqueraded(both), rows: [17] },
          { id: 'other-port', client: 'outside', to: tcp(externalIp(65), 81), expect: passed, rows: [17] },
        ]),
      },
    ],
  },
  {
    id: 'external-ip-of-the-node',
    title: "An external IP may be one of the node's own addresses",
    steps: [
      {
        after: 'start',
        objects: served('own-external-ip', 61, ['a1', 'b1'], {
          ports: [tcpPort(80)],
          spec: { externalIPs: families.map((family) => ownExternalAddress[family]) },
        }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(ownExternalAddress, 80), expect: masqueraded(both), rows: [17] },
          { id: 'pod-a', client: 'pod-a', to: tcp(ownExternalAddress, 80), expect: masqueraded(both), rows: [17] },
          { id: 'node-a', client: 'node-a', to: tcp(ownExternalAddress, 80), expect: masqueraded(both), rows: [17] },
          { id: 'other-port', client: 'outside', to: tcp(ownExternalAddress, 81), expect: refused, rows: [17] },
        ]),
      },
    ],
  },
]

const takenClusterIp: Case = {
  id: 'external-ip-is-a-cluster-ip',
  title: 'A cluster IP belongs to its own Service on all its ports, even if another Service lists it in externalIPs',
  steps: [
    {
      after: 'start',
      objects: [
        ...served('owner-of-cluster-ip', 66, ['a1'], { ports: [tcpPort(80)] }),
        ...served('another-lists-it', 67, ['b1'], {
          ports: [tcpPort(80, { name: 'same' }), tcpPort(443, { name: 'other' }), udpPort(443, { name: 'udp' })],
          spec: { externalIPs: families.map((family) => clusterIp(66)[family]) },
        }),
      ],
      cells: inFamilies([
        { id: 'own-port', client: 'pod-a', to: tcp(clusterIp(66), 80), expect: keepsSource(['a1']), rows: [13] },
        ...(['pod-a', 'node-a', 'outside'] as const).flatMap((client) => [
          { id: `${client}-other-port`, client, to: tcp(clusterIp(66), 443), expect: refused, rows: [14] },
          { id: `${client}-other-port-udp`, client, to: udp(clusterIp(66), 443), expect: refused, rows: [14] },
        ]),
        { id: 'the-other', client: 'pod-a', to: tcp(clusterIp(67), 443), expect: keepsSource(['b1']), rows: [13] },
      ]),
    },
  ],
}

const sctpCase: Case = {
  id: 'sctp',
  title: 'SCTP is served where the data plane can',
  steps: [
    {
      after: 'start',
      objects: served('sctp', 150, ['a1'], {
        ports: [{ name: '', protocol: 'SCTP', port: 80, targetPort: 8080, nodePort: nodePort(150) }],
        spec: { type: 'LoadBalancer' },
        ingress: families.map((family) => ({ ip: loadBalancerIp(150)[family] })),
      }),
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: sctp(clusterIp(150), 80), expect: keepsSource(['a1']), rows: [52] },
        { id: 'outside', client: 'outside', to: sctp(nodeA, nodePort(150)), expect: masqueraded(['a1']), rows: [52] },
      ]),
    },
  ],
}

export const addressCases: readonly Case[] = [nodePorts, ...externalIps, takenClusterIp, sctpCase]
