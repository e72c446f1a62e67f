import { clusterIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { keepsSource, masqueraded, oneStep, tcp } from './cells.js'
import { exposed } from './objects.js'

// Two links of the lab have a smaller MTU than the hosts at the ends of the path, whose packets must not be fragmented. The ICMP errors that tell
// them so come from the other side of the address translation: a client that does not get them translated back sends in vain.

const much = { bytes: 200_000, tries: 2 }

export const pathMtuCases: readonly Case[] = [
  oneStep({
    id: 'path-mtu',
    title: 'Much data, both ways, over a path with a smaller MTU than the ends know',
    objects: exposed('path-mtu', 215, ['b1']),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(215), 80), keepsSource(['b1']), [85], much],
      ['node-a', 'node-a', tcp(clusterIp(215), 80), masqueraded(['b1']), [85], much],
      ['outside-node-port', 'outside', tcp(nodeA, nodePort(215)), masqueraded(['b1']), [85], much],
      ['outside-load-balancer', 'outside', tcp(loadBalancerIp(215), 80), masqueraded(['b1']), [85], much],
    ],
  }),
]
