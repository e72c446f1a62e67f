/** What the checks of a node look at. */
export interface NodeFacts {
  /** `6.18.5-cloud` */
  readonly kernelRelease: string
  /** Why the nftables backend cannot work here; empty if it can. */
  readonly nftProblem: string
  readonly hasNetAdmin: boolean
  /** The values of `sysctlsOfInterest`; those that the kernel does not have are missing. */
  readonly sysctls: Readonly<Record<string, string>>
  /** The interfaces on which the kernel checks source addresses strictly. */
  readonly strictInterfaces: readonly string[]
  /** The names of this machine's bridges. */
  readonly bridges: readonly string[]
  readonly conntrack: { readonly count: number; readonly max: number }
  /** How many files a kpng may open: the one that runs, else one that is started like this command. */
  readonly openFiles: { readonly of: string; readonly limit: number }
  /** Proxies that run in this network namespace. */
  readonly processes: readonly ProxyProcess[]
  readonly ports: readonly ProxyPort[]
  readonly agents: readonly AgentFact[]
  /** What kube-proxy wrote, as texts such as `nat of iptables-nft: 23 chains`. */
  readonly leftovers: readonly string[]
  readonly iptables: readonly SavedRules[]
  /** This machine's addresses, without loopback and link-local ones. */
  readonly addresses: readonly string[]
}

/** What decides whether packets of Services get through. */
export type TrafficFacts = Pick<NodeFacts, 'sysctls' | 'addresses' | 'strictInterfaces' | 'conntrack'>

export interface ProxyProcess {
  readonly pid: number
  readonly program: 'kube-proxy' | 'kpng'
  /** Of a kpng: the proxy name and the backend on its command line. */
  readonly serviceProxyName?: string
  readonly backend?: string
}

/** A port that kube-proxy and kpng both use, and who answers there. */
export interface ProxyPort {
  readonly port: number
  readonly owner: 'kpng' | 'kube-proxy' | 'another program'
}

/** A socket of the agent API. */
export interface AgentFact {
  readonly path: string
  /** Why it cannot be asked. */
  readonly problem?: string
  readonly version?: string
  /** Why its last sync failed. */
  readonly syncError?: string
  /** Why its state is not up to date. */
  readonly stale?: string
}

/** What one variant of iptables holds, as `iptables-save` prints it. */
export interface SavedRules {
  /** `iptables-nft`, `ip6tables-legacy` … */
  readonly program: string
  readonly saved: string
}

export const rulesIn = ({ saved }: SavedRules): string[] => saved.split('\n').filter((line) => line.startsWith('-A '))

/** Also part of a bundle. */
export const sysctlsOfInterest = [
  'kernel.osrelease',
  'fs.file-max',
  'net.ipv4.ip_forward',
  'net.ipv6.conf.all.forwarding',
  'net.ipv6.conf.all.disable_ipv6',
  'net.ipv4.conf.all.rp_filter',
  'net.ipv4.conf.default.rp_filter',
  'net.ipv4.conf.all.route_localnet',
  'net.bridge.bridge-nf-call-iptables',
  'net.bridge.bridge-nf-call-ip6tables',
  'net.netfilter.nf_conntrack_count',
  'net.netfilter.nf_conntrack_max',
  'net.netfilter.nf_conntrack_tcp_be_liberal',
  'net.netfilter.nf_conntrack_tcp_timeout_established',
  'net.netfilter.nf_conntrack_udp_timeout',
  'net.netfilter.nf_conntrack_udp_timeout_stream',
  'net.ipv4.vs.conntrack',
] as const
