import type { Deviations } from './deviation.js'
import { iptablesMode } from './kube-proxy.js'

/** kpng's iptables backend follows kube-proxy's iptables mode, except that no Service can take ports of another one's cluster IP. */
export const iptables: Deviations = [
  ...iptablesMode,
  {
    cells: ['external-ip-is-a-cluster-ip/*-other-port*'],
    reason: 'iptables mode has no rule for other ports of a cluster IP: the packet is routed away',
    link: 'docs/iptables.md#where-it-differs-from-kube-proxy',
    instead: { outcome: 'passed' },
  },
]
