import type { Deviations } from './deviation.js'

/**
 * Everything but the sockets of the proxy's node is served by nftables, which follows kube-proxy in every cell. Those sockets connect to
 * the endpoint itself: no packet of theirs is rewritten, so endpoints see the address of the pod.
 */
export const ebpf: Deviations = [
  {
    cells: ['node-ports-everywhere/localhost.*'],
    reason: 'sockets of the node reach node ports on localhost too, where nodePortAddresses allows it',
    link: 'docs/ebpf.md#what-goes-which-way',
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
  {
    cells: ['hairpin/itself.*'],
    reason: 'a pod that reaches itself does so without leaving its network namespace, with its own address',
    link: 'docs/ebpf.md#what-goes-which-way',
    instead: { source: 'kept' },
  },
  {
    cells: [
      'external-cluster/pod-a-load-balancer.*',
      'external-cluster/pod-a-external-ip.*',
      'external-cluster/pod-a-node-port.*',
      'node-port/pod-a.*',
      'external-ip/pod-a.*',
      'external-ip-of-the-node/pod-a.*',
      'load-balancer-vip/pod-a.*',
      'specialised-headless/pod-a.*',
      'specialised-slices-by-hand/pod-a.*',
      'specialised-affinity/pod-a.*',
    ],
    reason: 'a pod of this node that asks for an address from outside the cluster is not masqueraded',
    link: 'docs/ebpf.md#what-goes-which-way',
    instead: { source: 'kept' },
  },
]
