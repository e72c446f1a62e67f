import { clusterIp, externalIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, keepsSource, masqueraded, oneStep, refused, tcp, udp } from './cells.js'
import { both, exposed, served, tcpAndUdp, tcpPort } from './objects.js'

const internalPolicy: readonly Case[] = [
  oneStep({
    id: 'internal-local',
    title: 'internalTrafficPolicy Local: only endpoints of this node',
    objects: served('internal-local', 40, both, {
      ports: tcpAndUdp(),
      spec: { internalTrafficPolicy: 'Local' },
    }),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(40), 80), keepsSource(['a1']), [31, 32]],
      ['pod-a-udp', 'pod-a', udp(clusterIp(40), 80), keepsSource(['a1']), [32]],
      ['node-a', 'node-a', tcp(clusterIp(40), 80), masqueraded(['a1']), [32]],
    ],
  }),
  oneStep({
    id: 'internal-local-none-here',
    title: 'internalTrafficPolicy Local without an endpoint on this node: dropped; other ways in are not affected',
    objects: exposed('internal-local-none', 41, ['b1'], { spec: { internalTrafficPolicy: 'Local' } }),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(41), 80), dropped, [32]],
      ['pod-a-udp', 'pod-a', udp(clusterIp(41), 80), dropped, [32]],
      ['node-a', 'node-a', tcp(clusterIp(41), 80), dropped, [32]],
      ['outside-node-port', 'outside', tcp(nodeA, nodePort(41)), masqueraded(['b1']), [32, 35]],
    ],
  }),
  oneStep({
    id: 'internal-local-none-anywhere',
    title: 'internalTrafficPolicy Local without any endpoint: refused',
    objects: served('internal-local-nothing', 42, [], {
      ports: [tcpPort(80)],
      spec: { internalTrafficPolicy: 'Local' },
    }),
    cells: [['pod-a', 'pod-a', tcp(clusterIp(42), 80), refused, [20, 32]]],
  }),
]

const hostNetwork: Case = oneStep({
  id: 'internal-local-host-network',
  title: 'internalTrafficPolicy Local with an endpoint in the network of the node itself',
  objects: served('internal-local-host', 194, ['node-a', 'b1'], {
    ports: [tcpPort(80)],
    spec: { internalTrafficPolicy: 'Local' },
  }),
  cells: [
    ['pod-a', 'pod-a', tcp(clusterIp(194), 80), keepsSource(['node-a']), [31, 32]],
    ['node-a', 'node-a', tcp(clusterIp(194), 80), masqueraded(['node-a']), [31, 32]],
  ],
})

const externalCluster: Case = oneStep({
  id: 'external-cluster',
  title: 'externalTrafficPolicy Cluster: every endpoint, and every client is masqueraded',
  objects: exposed('external-cluster', 50, both),
  cells: [
    ['outside-load-balancer', 'outside', tcp(loadBalancerIp(50), 80), masqueraded(both), [16, 35]],
    ['outside-load-balancer-udp', 'outside', udp(loadBalancerIp(50), 80), masqueraded(both), [16, 35, 52]],
    ['outside-external-ip', 'outside', tcp(externalIp(50), 80), masqueraded(both), [17, 35]],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(50)), masqueraded(both), [15, 35]],
    ['pod-a-load-balancer', 'pod-a', tcp(loadBalancerIp(50), 80), masqueraded(both), [16, 35]],
    ['pod-a-external-ip', 'pod-a', tcp(externalIp(50), 80), masqueraded(both), [17, 35]],
    ['pod-a-node-port', 'pod-a', tcp(nodeA, nodePort(50)), masqueraded(both), [15, 35]],
    ['node-a-load-balancer', 'node-a', tcp(loadBalancerIp(50), 80), masqueraded(both), [16]],
    ['node-a-external-ip', 'node-a', tcp(externalIp(50), 80), masqueraded(both), [17]],
    ['pod-b-load-balancer', 'pod-b', tcp(loadBalancerIp(50), 80), masqueraded(both), [16, 35]],
    ['node-b-load-balancer', 'node-b', tcp(loadBalancerIp(50), 80), masqueraded(both), [16, 35]],
    ['pod-a-cluster-ip', 'pod-a', tcp(clusterIp(50), 80), keepsSource(both), [13]],
  ],
})

const externalLocalNoneHere: Case = oneStep({
  id: 'external-local-none-here',
  title:
    'externalTrafficPolicy Local without an endpoint on this node: dropped from outside; pods and the node reach the others',
  objects: exposed('external-local-none', 52, ['b1'], { spec: { externalTrafficPolicy: 'Local' } }),
  cells: [
    ['outside-load-balancer', 'outside', tcp(loadBalancerIp(52), 80), dropped, [33]],
    ['outside-load-balancer-udp', 'outside', udp(loadBalancerIp(52), 80), dropped, [33]],
    ['outside-external-ip', 'outside', tcp(externalIp(52), 80), dropped, [33]],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(52)), dropped, [33]],
    ['outside-node-port-udp', 'outside', udp(nodeA, nodePort(52)), dropped, [33]],
    ['pod-a-load-balancer', 'pod-a', tcp(loadBalancerIp(52), 80), keepsSource(['b1']), [34]],
    ['pod-a-external-ip', 'pod-a', tcp(externalIp(52), 80), keepsSource(['b1']), [34]],
    ['pod-a-node-port', 'pod-a', tcp(nodeA, nodePort(52)), keepsSource(['b1']), [34]],
    ['node-a-load-balancer', 'node-a', tcp(loadBalancerIp(52), 80), masqueraded(['b1']), [34]],
    ['node-a-node-port', 'node-a', tcp(nodeA, nodePort(52)), masqueraded(['b1']), [34]],
    ['pod-a-cluster-ip', 'pod-a', tcp(clusterIp(52), 80), keepsSource(['b1']), [13]],
  ],
})

const externalLocalNoneAnywhere: Case = oneStep({
  id: 'external-local-none-anywhere',
  title: 'externalTrafficPolicy Local without any endpoint: refused',
  objects: exposed('external-local-nothing', 53, [], { spec: { externalTrafficPolicy: 'Local' } }),
  cells: [
    ['outside-load-balancer', 'outside', tcp(loadBalancerIp(53), 80), refused, [20, 33]],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(53)), refused, [20, 33]],
  ],
})

const externalLocal: Case = oneStep({
  id: 'external-local',
  title:
    'externalTrafficPolicy Local: local endpoints and the source kept from outside; all endpoints for pods and the node',
  objects: exposed('external-local', 51, both, { spec: { externalTrafficPolicy: 'Local' } }),
  cells: [
    ['outside-load-balancer', 'outside', tcp(loadBalancerIp(51), 80), keepsSource(['a1']), [33]],
    ['outside-load-balancer-udp', 'outside', udp(loadBalancerIp(51), 80), keepsSource(['a1']), [33]],
    ['outside-external-ip', 'outside', tcp(externalIp(51), 80), keepsSource(['a1']), [33]],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(51)), keepsSource(['a1']), [33]],
    ['outside-node-port-udp', 'outside', udp(nodeA, nodePort(51)), keepsSource(['a1']), [33]],
    ['node-b-load-balancer', 'node-b', tcp(loadBalancerIp(51), 80), keepsSource(['a1']), [33]],
    ['node-b-node-port', 'node-b', tcp(nodeA, nodePort(51)), keepsSource(['a1']), [33]],
    ['pod-a-load-balancer', 'pod-a', tcp(loadBalancerIp(51), 80), keepsSource(both), [34]],
    ['pod-a-external-ip', 'pod-a', tcp(externalIp(51), 80), keepsSource(both), [34]],
    ['pod-a-node-port', 'pod-a', tcp(nodeA, nodePort(51)), keepsSource(both), [34]],
    ['node-a-load-balancer', 'node-a', tcp(loadBalancerIp(51), 80), masqueraded(both), [34]],
    ['node-a-external-ip', 'node-a', tcp(externalIp(51), 80), masqueraded(both), [34]],
    ['node-a-node-port', 'node-a', tcp(nodeA, nodePort(51)), masqueraded(both), [34]],
    ['pod-a-cluster-ip', 'pod-a', tcp(clusterIp(51), 80), keepsSource(both), [13]],
  ],
})

export const trafficPolicyCases: readonly Case[] = [
  ...internalPolicy,
  hostNetwork,
  externalCluster,
  externalLocalNoneHere,
  externalLocalNoneAnywhere,
  externalLocal,
]
