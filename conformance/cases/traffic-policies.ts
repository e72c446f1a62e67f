import { addressOf, clusterIp, externalIp, families, loadBalancerIp, nodePort, type Server } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, refused, tcp, udp } from './cells.js'
import { served, tcpPort, udpPort } from './objects.js'

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']

/** A load balancer with a node port and an external IP, TCP and UDP. */
const exposed = (name: string, number: number, endpoints: readonly Server[], spec: object): KubernetesObject[] =>
  served(name, number, endpoints, {
    ports: [
      tcpPort(80, { name: 'tcp', nodePort: nodePort(number) }),
      udpPort(80, { name: 'udp', nodePort: nodePort(number) }),
    ],
    spec: { type: 'LoadBalancer', externalIPs: families.map((family) => externalIp(number)[family]), ...spec },
    ingress: families.map((family) => ({ ip: loadBalancerIp(number)[family] })),
  })

const internal: readonly Case[] = [
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
        objects: exposed('internal-local-none', 41, ['b1'], { internalTrafficPolicy: 'Local' }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(41), 80), expect: dropped, rows: [32] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(41), 80), expect: dropped, rows: [32] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(41), 80), expect: dropped, rows: [32] },
          { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(41)), expect: masqueraded(['b1']), rows: [32, 35] },
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
        objects: served('internal-local-nothing', 42, [], { ports: [tcpPort(80)], spec: { internalTrafficPolicy: 'Local' } }),
        cells: inFamilies([{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(42), 80), expect: refused, rows: [20, 32] }]),
      },
    ],
  },
]

const externalCluster: Case = {
  id: 'external-cluster',
  title: 'externalTrafficPolicy Cluster: every endpoint, and every client is masqueraded',
  steps: [
    {
      after: 'start',
      objects: exposed('external-cluster', 50, ['a1', 'b1'], {}),
      cells: inFamilies([
        { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(50), 80), expect: masqueraded(both), rows: [16, 35] },
        { id: 'outside-load-balancer-udp', client: 'outside', to: udp(loadBalancerIp(50), 80), expect: masqueraded(both), rows: [16, 35, 52] },
        { id: 'outside-external-ip', client: 'outside', to: tcp(externalIp(50), 80), expect: masqueraded(both), rows: [17, 35] },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(50)), expect: masqueraded(both), rows: [15, 35] },
        { id: 'pod-a-load-balancer', client: 'pod-a', to: tcp(loadBalancerIp(50), 80), expect: masqueraded(both), rows: [16, 35] },
        { id: 'pod-a-external-ip', client: 'pod-a', to: tcp(externalIp(50), 80), expect: masqueraded(both), rows: [17, 35] },
        { id: 'pod-a-node-port', client: 'pod-a', to: tcp(nodeA, nodePort(50)), expect: masqueraded(both), rows: [15, 35] },
        { id: 'node-a-load-balancer', client: 'node-a', to: tcp(loadBalancerIp(50), 80), expect: masqueraded(both), rows: [16] },
        { id: 'node-a-external-ip', client: 'node-a', to: tcp(externalIp(50), 80), expect: masqueraded(both), rows: [17] },
        { id: 'pod-b-load-balancer', client: 'pod-b', to: tcp(loadBalancerIp(50), 80), expect: masqueraded(both), rows: [16, 35] },
        { id: 'node-b-load-balancer', client: 'node-b', to: tcp(loadBalancerIp(50), 80), expect: masqueraded(both), rows: [16, 35] },
        { id: 'pod-a-cluster-ip', client: 'pod-a', to: tcp(clusterIp(50), 80), expect: keepsSource(both), rows: [13] },
      ]),
    },
  ],
}

const externalLocal: Case = {
  id: 'external-local',
  title: 'externalTrafficPolicy Local: local endpoints and the source kept from outside; all endpoints for pods and the node',
  steps: [
    {
      after: 'start',
      objects: exposed('external-local', 51, ['a1', 'b1'], { externalTrafficPolicy: 'Local' }),
      cells: inFamilies([
        { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(51), 80), expect: keepsSource(['a1']), rows: [33] },
        { id: 'outside-load-balancer-udp', client: 'outside', to: udp(loadBalancerIp(51), 80), expect: keepsSource(['a1']), rows: [33] },
        { id: 'outside-external-ip', client: 'outside', to: tcp(externalIp(51), 80), expect: keepsSource(['a1']), rows: [33] },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(51)), expect: keepsSource(['a1']), rows: [33] },
        { id: 'outside-node-port-udp', client: 'outside', to: udp(nodeA, nodePort(51)), expect: keepsSource(['a1']), rows: [33] },
        { id: 'node-b-load-balancer', client: 'node-b', to: tcp(loadBalancerIp(51), 80), expect: keepsSource(['a1']), rows: [33] },
        { id: 'node-b-node-port', client: 'node-b', to: tcp(nodeA, nodePort(51)), expect: keepsSource(['a1']), rows: [33] },
        { id: 'pod-a-load-balancer', client: 'pod-a', to: tcp(loadBalancerIp(51), 80), expect: keepsSource(both), rows: [34] },
        { id: 'pod-a-external-ip', client: 'pod-a', to: tcp(externalIp(51), 80), expect: keepsSource(both), rows: [34] },
        { id: 'pod-a-node-port', client: 'pod-a', to: tcp(nodeA, nodePort(51)), expect: keepsSource(both), rows: [34] },
        { id: 'node-a-load-balancer', client: 'node-a', to: tcp(loadBalancerIp(51), 80), expect: masqueraded(both), rows: [34] },
        { id: 'node-a-external-ip', client: 'node-a', to: tcp(externalIp(51), 80), expect: masqueraded(both), rows: [34] },
        { id: 'node-a-node-port', client: 'node-a', to: tcp(nodeA, nodePort(51)), expect: masqueraded(both), rows: [34] },
        { id: 'pod-a-cluster-ip', client: 'pod-a', to: tcp(clusterIp(51), 80), expect: keepsSource(both), rows: [13] },
      ]),
    },
  ],
}

const externalLocalNoneHere: Case = {
  id: 'external-local-none-here',
  title: 'externalTrafficPolicy Local without an endpoint on this node: dropped from outside; pods and the node reach the others',
  steps: [
    {
      after: 'start',
      objects: exposed('external-local-none', 52, ['b1'], { externalTrafficPolicy: 'Local' }),
      cells: inFamilies([
        { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(52), 80), expect: dropped, rows: [33] },
        { id: 'outside-load-balancer-udp', client: 'outside', to: udp(loadBalancerIp(52), 80), expect: dropped, rows: [33] },
        { id: 'outside-external-ip', client: 'outside', to: tcp(externalIp(52), 80), expect: dropped, rows: [33] },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(52)), expect: dropped, rows: [33] },
        { id: 'outside-node-port-udp', client: 'outside', to: udp(nodeA, nodePort(52)), expect: dropped, rows: [33] },
        { id: 'pod-a-load-balancer', client: 'pod-a', to: tcp(loadBalancerIp(52), 80), expect: keepsSource(['b1']), rows: [34] },
        { id: 'pod-a-external-ip', client: 'pod-a', to: tcp(externalIp(52), 80), expect: keepsSource(['b1']), rows: [34] },
        { id: 'pod-a-node-port', client: 'pod-a', to: tcp(nodeA, nodePort(52)), expect: keepsSource(['b1']), rows: [34] },
        { id: 'node-a-load-balancer', client: 'node-a', to: tcp(loadBalancerIp(52), 80), expect: masqueraded(['b1']), rows: [34] },
        { id: 'node-a-node-port', client: 'node-a', to: tcp(nodeA, nodePort(52)), expect: masqueraded(['b1']), rows: [34] },
        { id: 'pod-a-cluster-ip', client: 'pod-a', to: tcp(clusterIp(52), 80), expect: keepsSource(['b1']), rows: [13] },
      ]),
    },
  ],
}

const externalLocalNoneAnywhere: Case = {
  id: 'external-local-none-anywhere',
  title: 'externalTrafficPolicy Local without any endpoint: refused',
  steps: [
    {
      after: 'start',
      objects: exposed('external-local-nothing', 53, [], { externalTrafficPolicy: 'Local' }),
      cells: inFamilies([
        { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(53), 80), expect: refused, rows: [20, 33] },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(53)), expect: refused, rows: [20, 33] },
      ]),
    },
  ],
}

export const trafficPolicyCases: readonly Case[] = [
  ...internal,
  externalCluster,
  externalLocal,
  externalLocalNoneHere,
  externalLocalNoneAnywhere,
]
