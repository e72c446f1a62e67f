// Every name that kube-proxy leaves on a node, in all modes and older versions. Anything else stays: kubelet's KUBE-FIREWALL,
// KUBE-KUBELET-CANARY and KUBE-IPTABLES-HINT, kpng's KPNG-… (and, beside its ownership chain, KUBE-…), the chains and sets of network policies (kube-router's are called KUBE-SRC-…,
// KUBE-POD-FW-…).

/** Chains that kube-proxy jumps to from built-in chains. */
const entranceChains: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-POSTROUTING',
  'KUBE-FORWARD',
  'KUBE-PROXY-FIREWALL',
  // Of ipvs mode.
  'KUBE-NODE-PORT',
  'KUBE-IPVS-FILTER',
  'KUBE-IPVS-OUT-FILTER',
  // Of userspace mode, which kube-proxy had until 1.25.
  'KUBE-PORTALS-CONTAINER',
  'KUBE-PORTALS-HOST',
  'KUBE-NODEPORT-CONTAINER',
  'KUBE-NODEPORT-HOST',
  'KUBE-NODEPORT-NON-LOCAL',
])

const innerChains: ReadonlySet<string> = new Set([
  'KUBE-MARK-MASQ',
  'KUBE-MARK-DROP',
  'KUBE-PROXY-CANARY',
  // Of ipvs mode. They use its sets, so they must be deleted before the sets.
  'KUBE-LOAD-BALANCER',
  'KUBE-SOURCE-RANGES-FIREWALL',
])

const chainPrefixes = ['KUBE-SVC-', 'KUBE-SEP-', 'KUBE-FW-', 'KUBE-XLB-', 'KUBE-SVL-', 'KUBE-EXT-']

/** While it exists in a table, the KUBE-… chains there belong to kpng's iptables backend. */
export const kpngOwnerChain = 'KPNG-OWNER-kpng'

export const isEntranceChain = (chain: string): boolean => entranceChains.has(chain)

export const isKubeProxyChain = (chain: string): boolean =>
  entranceChains.has(chain) || innerChains.has(chain) || chainPrefixes.some((prefix) => chain.startsWith(prefix))

/** The tables that kube-proxy's iptables and ipvs modes write to. */
export const iptablesTables: ReadonlySet<string> = new Set(['nat', 'filter', 'mangle'])

/** Of nftables mode, by family; `inet` is that of older versions. */
export const nftTables: ReadonlySet<string> = new Set(['ip kube-proxy', 'ip6 kube-proxy', 'inet kube-proxy'])

/** The interface that carries the Services' addresses in ipvs mode. */
export const ipvsInterface = 'kube-ipvs0'

const setNames = [
  'LOOP-BACK',
  'CLUSTER-IP',
  'EXTERNAL-IP',
  'EXTERNAL-IP-LOCAL',
  'LOAD-BALANCER',
  'LOAD-BALANCER-LOCAL',
  'LOAD-BALANCER-FW',
  'LOAD-BALANCER-SOURCE-IP',
  'LOAD-BALANCER-SOURCE-CIDR',
  'NODE-PORT-TCP',
  'NODE-PORT-LOCAL-TCP',
  'NODE-PORT-UDP',
  'NODE-PORT-LOCAL-UDP',
  'NODE-PORT-SCTP-HASH',
  'NODE-PORT-LOCAL-SCTP-HASH',
  'HEALTH-CHECK-NODE-PORT',
  'IPVS-IPS',
]

/** ipset takes names of 31 characters at most; kube-proxy cuts the IPv6 ones to that. */
const maxSetNameLength = 31

/** The sets of ipvs mode. */
export const kubeProxySets: ReadonlySet<string> = new Set(
  setNames.flatMap((name) => [`KUBE-${name}`, `KUBE-6-${name}`.slice(0, maxSetNameLength)]),
)
