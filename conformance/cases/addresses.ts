import { clusterIp, externalIp, ipsOf, nodeA, nodePort, ownExternalAddress, secondAddress } from '../addresses.js'
import type { Case } from './case.js'
import { type CellSpec, keepsSource, masqueraded, oneStep, passed, refused, tcp, udp } from './cells.js'
import { both, served, tcpAndUdp, tcpPort, udpPort } from './objects.js'

// Node ports and external IPs: where a Service can be reached beside its cluster IP.

const localhost = { IPv4: '127.0.0.1', IPv6: '::1' }

const nodePorts: Case = oneStep({
  id: 'node-port',
  title: "A node port is served at the node's primary addresses, and nowhere else",
  objects: served('node-port', 60, both, {
    ports: tcpAndUdp({ nodePort: nodePort(60) }),
    spec: { type: 'NodePort' },
  }),
  cells: [
    ['outside', 'outside', tcp(nodeA, nodePort(60)), masqueraded(both), [15, 35]],
    ['outside-udp', 'outside', udp(nodeA, nodePort(60)), masqueraded(both), [15, 35]],
    ['pod-a', 'pod-a', tcp(nodeA, nodePort(60)), masqueraded(both), [15]],
    ['node-a', 'node-a', tcp(nodeA, nodePort(60)), masqueraded(both), [15]],
    ['node-a-udp', 'node-a', udp(nodeA, nodePort(60)), masqueraded(both), [15]],
    ['pod-b', 'pod-b', tcp(nodeA, nodePort(60)), masqueraded(both), [15]],
    ['node-b', 'node-b', tcp(nodeA, nodePort(60)), masqueraded(both), [15]],
    ['second-address', 'outside', tcp(secondAddress, nodePort(60)), refused, [40]],
    ['second-address-udp', 'outside', udp(secondAddress, nodePort(60)), refused, [40]],
    ['localhost', 'node-a', tcp(localhost, nodePort(60)), refused, [41]],
    ['on-cluster-ip', 'pod-a', tcp(clusterIp(60), nodePort(60)), refused, [14, 40]],
    ['service-port-on-node', 'outside', tcp(nodeA, 80), refused, [15]],
    ['cluster-ip', 'pod-a', tcp(clusterIp(60), 80), keepsSource(both), [13]],
  ],
})

const externalIps: readonly Case[] = [
  oneStep({
    id: 'external-ip',
    title: 'An external IP is served like a cluster IP, under the external policy; its other ports are left alone',
    objects: served('external-ip', 65, both, {
      ports: tcpAndUdp(),
      spec: { externalIPs: ipsOf(externalIp(65)) },
    }),
    cells: [
      ['outside', 'outside', tcp(externalIp(65), 80), masqueraded(both), [17]],
      ['outside-udp', 'outside', udp(externalIp(65), 80), masqueraded(both), [17]],
      ['pod-a', 'pod-a', tcp(externalIp(65), 80), masqueraded(both), [17]],
      ['node-a', 'node-a', tcp(externalIp(65), 80), masqueraded(both), [17]],
      ['other-port', 'outside', tcp(externalIp(65), 81), passed, [17]],
    ],
  }),
  oneStep({
    id: 'external-ip-of-the-node',
    title: "An external IP may be one of the node's own addresses",
    objects: served('own-external-ip', 61, both, {
      ports: [tcpPort(80)],
      spec: { externalIPs: ipsOf(ownExternalAddress) },
    }),
    cells: [
      ['outside', 'outside', tcp(ownExternalAddress, 80), masqueraded(both), [17]],
      ['pod-a', 'pod-a', tcp(ownExternalAddress, 80), masqueraded(both), [17]],
      ['node-a', 'node-a', tcp(ownExternalAddress, 80), masqueraded(both), [17]],
      ['other-port', 'outside', tcp(ownExternalAddress, 81), refused, [17]],
    ],
  }),
]

const takenClusterIp: Case = oneStep({
  id: 'external-ip-is-a-cluster-ip',
  title: 'A cluster IP belongs to its own Service on all its ports, even if another Service lists it in externalIPs',
  objects: [
    ...served('owner-of-cluster-ip', 66, ['a1'], { ports: [tcpPort(80)] }),
    ...served('another-lists-it', 67, ['b1'], {
      ports: [tcpPort(80, { name: 'same' }), tcpPort(443, { name: 'other' }), udpPort(443, { name: 'udp' })],
      spec: { externalIPs: ipsOf(clusterIp(66)) },
    }),
  ],
  cells: [
    ['own-port', 'pod-a', tcp(clusterIp(66), 80), keepsSource(['a1']), [13]],
    ...(['pod-a', 'node-a', 'outside'] as const).flatMap((client): CellSpec[] => [
      [`${client}-other-port`, client, tcp(clusterIp(66), 443), refused, [14]],
      [`${client}-other-port-udp`, client, udp(clusterIp(66), 443), refused, [14]],
    ]),
    ['the-other', 'pod-a', tcp(clusterIp(67), 443), keepsSource(['b1']), [13]],
  ],
})

export const addressCases: readonly Case[] = [nodePorts, ...externalIps, takenClusterIp]
