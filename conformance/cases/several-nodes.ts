import { addressOf, clusterIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, masqueraded, reaches, tcp, udp } from './cells.js'
import { both, exposed } from './objects.js'

// The proxy runs on node-a and on node-b. Packets of node-b's pods are served by node-b; those from outside to node-b pass through node-a.

const nodeB = addressOf['node-b']

const policies: Case = {
  id: 'two-nodes',
  title: 'Each node serves its own pods and its own node ports, also for endpoints of the other node',
  onBothNodes: true,
  steps: [
    {
      after: 'start',
      objects: [
        ...exposed('two-nodes', 228, both),
        ...exposed('two-nodes-local', 229, both, { spec: { externalTrafficPolicy: 'Local' } }),
      ],
      cells: inFamilies([
        ['pod-a', 'pod-a', tcp(clusterIp(228), 80), keepsSource(both), [87]],
        ['pod-b', 'pod-b', tcp(clusterIp(228), 80), keepsSource(both), [87]],
        ['pod-b-udp', 'pod-b', udp(clusterIp(228), 80), keepsSource(both), [87]],
        // It may be served by either node.
        ['hairpin', 'b1', tcp(clusterIp(228), 80), reaches(both), [21, 87]],
        ['outside-to-a', 'outside', tcp(nodeA, nodePort(228)), masqueraded(both), [87]],
        ['outside-to-b', 'outside', tcp(nodeB, nodePort(228)), reaches(both), [87]],
        ['pod-b-to-a', 'pod-b', tcp(nodeA, nodePort(228)), masqueraded(both), [87]],
        ['pod-a-to-b', 'pod-a', tcp(nodeB, nodePort(228)), reaches(both), [87]],
        ['node-b', 'node-b', tcp(clusterIp(228), 80), reaches(both), [87]],
        ['local-on-a', 'outside', tcp(loadBalancerIp(229), 80), keepsSource(['a1']), [33, 87]],
        ['local-on-b', 'outside', tcp(nodeB, nodePort(229)), keepsSource(['b1']), [33, 87]],
        ['flow-b', 'pod-b', udp(clusterIp(228), 80), keepsSource(both, { hits: 'one' }), [53, 87], { flow: 'b' }],
      ]),
    },
    {
      after: 'the only endpoint is b2',
      objects: [
        ...exposed('two-nodes', 228, ['b2']),
        ...exposed('two-nodes-local', 229, ['b2'], { spec: { externalTrafficPolicy: 'Local' } }),
      ],
      cells: inFamilies([
        ['pod-a', 'pod-a', tcp(clusterIp(228), 80), keepsSource(['b2']), [24, 87]],
        ['pod-b', 'pod-b', tcp(clusterIp(228), 80), keepsSource(['b2']), [24, 87]],
        ['local-on-a', 'outside', tcp(loadBalancerIp(229), 80), { outcome: 'dropped' }, [33, 87]],
        ['local-on-b', 'outside', tcp(nodeB, nodePort(229)), keepsSource(['b2']), [33, 87]],
        ['flow-b', 'pod-b', udp(clusterIp(228), 80), keepsSource(['b2']), [53, 87], { flow: 'b' }],
      ]),
    },
  ],
}

export const severalNodeCases: readonly Case[] = [policies]
