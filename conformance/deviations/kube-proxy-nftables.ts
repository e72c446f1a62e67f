import type { Deviations } from './deviation.js'

/** The reference, with what it is known to miss. */
export const kubeProxyNftables: Deviations = [
  {
    cells: ['udp-no-endpoints/2/*'],
    reason: 'kube-proxy (seen in 1.36) leaves UDP flows of a Service that has no endpoints any more',
    instead: { outcome: 'reached', servers: ['a1'], source: 'any' },
  },
  {
    cells: ['external-ip-is-a-cluster-ip/*-other-port*'],
    reason:
      'kube-proxy serves an external IP also if it is the cluster IP of another Service (expected from its rules; not measured)',
    instead: { outcome: 'reached', servers: ['b1'], source: 'node' },
  },
]
