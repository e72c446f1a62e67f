import { addressOf, clusterIp, externalIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, masqueraded, tcp, udp } from './cells.js'
import { exposed } from './exposed.js'

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']

export const externalLocalCase: Case = {
  id: 'external-local',
  title:
    'externalTrafficPolicy Local: local endpoints and the source kept from outside; all endpoints for pods and the node',
  steps: [
    {
      after: 'start',
      objects: exposed('external-local', 51, ['a1', 'b1'], { spec: { externalTrafficPolicy: 'Local' } }),
      cells: inFamilies([
        {
          id: 'outside-load-balancer',
          client: 'outside',
          to: tcp(loadBalancerIp(51), 80),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'outside-load-balancer-udp',
          client: 'outside',
          to: udp(loadBalancerIp(51), 80),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'outside-external-ip',
          client: 'outside',
          to: tcp(externalIp(51), 80),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'outside-node-port',
          client: 'outside',
          to: tcp(nodeA, nodePort(51)),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'outside-node-port-udp',
          client: 'outside',
          to: udp(nodeA, nodePort(51)),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'node-b-load-balancer',
          client: 'node-b',
          to: tcp(loadBalancerIp(51), 80),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'node-b-node-port',
          client: 'node-b',
          to: tcp(nodeA, nodePort(51)),
          expect: keepsSource(['a1']),
          rows: [33],
        },
        {
          id: 'pod-a-load-balancer',
          client: 'pod-a',
          to: tcp(loadBalancerIp(51), 80),
          expect: keepsSource(both),
          rows: [34],
        },
        {
          id: 'pod-a-external-ip',
          client: 'pod-a',
          to: tcp(externalIp(51), 80),
          expect: keepsSource(both),
          rows: [34],
        },
        { id: 'pod-a-node-port', client: 'pod-a', to: tcp(nodeA, nodePort(51)), expect: keepsSource(both), rows: [34] },
        {
          id: 'node-a-load-balancer',
          client: 'node-a',
          to: tcp(loadBalancerIp(51), 80),
          expect: masqueraded(both),
          rows: [34],
        },
        {
          id: 'node-a-external-ip',
          client: 'node-a',
          to: tcp(externalIp(51), 80),
          expect: masqueraded(both),
          rows: [34],
        },
        {
          id: 'node-a-node-port',
          client: 'node-a',
          to: tcp(nodeA, nodePort(51)),
          expect: masqueraded(both),
          rows: [34],
        },
        { id: 'pod-a-cluster-ip', client: 'pod-a', to: tcp(clusterIp(51), 80), expect: keepsSource(both), rows: [13] },
      ]),
    },
  ],
}
