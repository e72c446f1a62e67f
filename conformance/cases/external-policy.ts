import { addressOf, clusterIp, externalIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, refused, tcp, udp } from './cells.js'
import { exposed } from './exposed.js'

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']

const externalCluster: Case = {
  id: 'external-cluster',
  title: 'externalTrafficPolicy Cluster: every endpoint, and every client is masqueraded',
  steps: [
    {
      after: 'start',
      objects: exposed('external-cluster', 50, ['a1', 'b1']),
      cells: inFamilies([
        {
          id: 'outside-load-balancer',
          client: 'outside',
          to: tcp(loadBalancerIp(50), 80),
          expect: masqueraded(both),
          rows: [16, 35],
        },
        {
          id: 'outside-load-balancer-udp',
          client: 'outside',
          to: udp(loadBalancerIp(50), 80),
          expect: masqueraded(both),
          rows: [16, 35, 52],
        },
        {
          id: 'outside-external-ip',
          client: 'outside',
          to: tcp(externalIp(50), 80),
          expect: masqueraded(both),
          rows: [17, 35],
        },
        {
          id: 'outside-node-port',
          client: 'outside',
          to: tcp(nodeA, nodePort(50)),
          expect: masqueraded(both),
          rows: [15, 35],
        },
        {
          id: 'pod-a-load-balancer',
          client: 'pod-a',
          to: tcp(loadBalancerIp(50), 80),
          expect: masqueraded(both),
          rows: [16, 35],
        },
        {
          id: 'pod-a-external-ip',
          client: 'pod-a',
          to: tcp(externalIp(50), 80),
          expect: masqueraded(both),
          rows: [17, 35],
        },
        {
          id: 'pod-a-node-port',
          client: 'pod-a',
          to: tcp(nodeA, nodePort(50)),
          expect: masqueraded(both),
          rows: [15, 35],
        },
        {
          id: 'node-a-load-balancer',
          client: 'node-a',
          to: tcp(loadBalancerIp(50), 80),
          expect: masqueraded(both),
          rows: [16],
        },
        {
          id: 'node-a-external-ip',
          client: 'node-a',
          to: tcp(externalIp(50), 80),
          expect: masqueraded(both),
          rows: [17],
        },
        {
          id: 'pod-b-load-balancer',
          client: 'pod-b',
          to: tcp(loadBalancerIp(50), 80),
          expect: masqueraded(both),
          rows: [16, 35],
        },
        {
          id: 'node-b-load-balancer',
          client: 'node-b',
          to: tcp(loadBalancerIp(50), 80),
          expect: masqueraded(both),
          rows: [16, 35],
        },
        { id: 'pod-a-cluster-ip', client: 'pod-a', to: tcp(clusterIp(50), 80), expect: keepsSource(both), rows: [13] },
      ]),
    },
  ],
}

const externalLocalNoneHere: Case = {
  id: 'external-local-none-here',
  title:
    'externalTrafficPolicy Local without an endpoint on this node: dropped from outside; pods and the node reach the others',
  steps: [
    {
      after: 'start',
      objects: exposed('external-local-none', 52, ['b1'], { spec: { externalTrafficPolicy: 'Local' } }),
      cells: inFamilies([
        {
          id: 'outside-load-balancer',
          client: 'outside',
          to: tcp(loadBalancerIp(52), 80),
          expect: dropped,
          rows: [33],
        },
        {
          id: 'outside-load-balancer-udp',
          client: 'outside',
          to: udp(loadBalancerIp(52), 80),
          expect: dropped,
          rows: [33],
        },
        { id: 'outside-external-ip', client: 'outside', to: tcp(externalIp(52), 80), expect: dropped, rows: [33] },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(52)), expect: dropped, rows: [33] },
        { id: 'outside-node-port-udp', client: 'outside', to: udp(nodeA, nodePort(52)), expect: dropped, rows: [33] },
        {
          id: 'pod-a-load-balancer',
          client: 'pod-a',
          to: tcp(loadBalancerIp(52), 80),
          expect: keepsSource(['b1']),
          rows: [34],
        },
        {
          id: 'pod-a-external-ip',
          client: 'pod-a',
          to: tcp(externalIp(52), 80),
          expect: keepsSource(['b1']),
          rows: [34],
        },
        {
          id: 'pod-a-node-port',
          client: 'pod-a',
          to: tcp(nodeA, nodePort(52)),
          expect: keepsSource(['b1']),
          rows: [34],
        },
        {
          id: 'node-a-load-balancer',
          client: 'node-a',
          to: tcp(loadBalancerIp(52), 80),
          expect: masqueraded(['b1']),
          rows: [34],
        },
        {
          id: 'node-a-node-port',
          client: 'node-a',
          to: tcp(nodeA, nodePort(52)),
          expect: masqueraded(['b1']),
          rows: [34],
        },
        {
          id: 'pod-a-cluster-ip',
          client: 'pod-a',
          to: tcp(clusterIp(52), 80),
          expect: keepsSource(['b1']),
          rows: [13],
        },
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
      objects: exposed('external-local-nothing', 53, [], { spec: { externalTrafficPolicy: 'Local' } }),
      cells: inFamilies([
        {
          id: 'outside-load-balancer',
          client: 'outside',
          to: tcp(loadBalancerIp(53), 80),
          expect: refused,
          rows: [20, 33],
        },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(53)), expect: refused, rows: [20, 33] },
      ]),
    },
  ],
}

export const externalPolicyCases: readonly Case[] = [externalCluster, externalLocalNoneHere, externalLocalNoneAnywhere]
