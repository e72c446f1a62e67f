import type { Deviations } from './deviation.js'
import { iptablesMode } from './kube-proxy.js'

/** kpng's iptables backend follows kube-proxy's iptables mode. */
export const iptables: Deviations = iptablesMode
