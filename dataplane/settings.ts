import { type Cidr, KpngError, parseCidr } from '@kpng/api'

/** How pods of this cluster are recognised: kube-proxy's `detectLocalMode`. */
export type DetectLocal =
  /** By the CIDRs of all pods of the cluster. In a family without a CIDR, pods are not recognised. */
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly string[] }
  /** By the pod CIDRs of this node, from its Node object. */
  | { readonly mode: 'NodeCIDR' }
  /** By the bridge that connects the node's pods. */
  | { readonly mode: 'BridgeInterface'; readonly name: string }
  /** By the beginning of the names of the pods' interfaces. */
  | { readonly mode: 'InterfaceNamePrefix'; readonly prefix: string }

/** The decisions that all data planes share. */
export interface DataplaneOptions {
  /**
   * Which addresses of the node serve node ports: CIDRs, and the words `primary` (the node's first address of each family),
   * `all` and `localhost`. As in kube-proxy, a family without an entry is served on all its addresses. Default `['primary']`.
   */
  readonly nodePortAddresses?: readonly string[]
  /** Whether `spec.externalIPs` are served. Default true. */
  readonly externalIps?: boolean
  /**
   * Whether external and load-balancer IPs that are addresses of this node or of a pod are refused. Somebody who may write Services
   * could use them to take over traffic (CVE-2020-8554). Default false, as in kube-proxy.
   */
  readonly protectNodeAndPodIps?: boolean
  /**
   * Whether endpoints and Service addresses may be on loopback. Only for playgrounds on one machine: it opens the node's local ports
   * to everybody who may write Services. Default false.
   */
  readonly allowLoopback?: boolean
  /**
   * Whether the data plane can enforce loadBalancerSourceRanges. If not, an address with ranges is not served: it must not be open to
   * everybody. Default true.
   */
  readonly sourceRanges?: boolean
  /** Whether all traffic to cluster IPs is masqueraded. Default false. */
  readonly masqueradeAll?: boolean
  /** Default: `ClusterCIDR` without a CIDR. */
  readonly detectLocal?: DetectLocal
}

/** The options with their defaults, checked. */
export interface DataplaneSettings extends Required<DataplaneOptions> {
  /** The CIDRs of detectLocal. */
  readonly clusterCidrs: readonly Cidr[]
}

export function dataplaneSettings(options: DataplaneOptions = {}): DataplaneSettings {
  const {
    nodePortAddresses = ['primary'],
    externalIps = true,
    protectNodeAndPodIps = false,
    allowLoopback = false,
    sourceRanges = true,
    masqueradeAll = false,
    detectLocal = { mode: 'ClusterCIDR', cidrs: [] },
  } = options
  for (const entry of nodePortAddresses) {
    if (!(entry in nodePortWords)) checkedCidr(entry, 'nodePortAddresses', ' or one of primary, all and localhost')
  }
  return {
    nodePortAddresses,
    externalIps,
    protectNodeAndPodIps,
    allowLoopback,
    sourceRanges,
    masqueradeAll,
    detectLocal: checkedDetectLocal(detectLocal),
    clusterCidrs:
      detectLocal.mode === 'ClusterCIDR' ? detectLocal.cidrs.map((text) => checkedCidr(text, 'detectLocal.cidrs')) : [],
  }
}

/** The words that nodePortAddresses may contain, and their CIDRs; those of `primary` depend on the node. */
export const nodePortWords: { readonly [word: string]: readonly string[] } = {
  primary: [],
  all: ['0.0.0.0/0', '::/0'],
  localhost: ['127.0.0.0/8', '::1/128'],
}

/** A bit of the packet mark. */
export function checkedMasqueradeBit(bit: number): number {
  if (Number.isInteger(bit) && bit >= 0 && bit <= 31) return bit
  throw new KpngError('usage', `masqueradeBit ${bit} is not a bit of a packet mark. Give a number from 0 to 31.`)
}

function checkedCidr(text: string, option: string, otherwise = ''): Cidr {
  const cidr = parseCidr(text)
  if (cidr) return cidr
  throw new KpngError(
    'usage',
    `"${text}" in ${option} is not a CIDR. Write one like 10.0.0.0/8 or fd00::/64${otherwise}.`,
  )
}

/** Interface names become part of rules, so only valid names are accepted. */
function checkedDetectLocal(detectLocal: DetectLocal): DetectLocal {
  const name =
    detectLocal.mode === 'BridgeInterface'
      ? detectLocal.name
      : detectLocal.mode === 'InterfaceNamePrefix'
        ? detectLocal.prefix
        : undefined
  if (name === undefined || /^[A-Za-z0-9_.@-]{1,15}$/.test(name)) return detectLocal
  throw new KpngError(
    'usage',
    `"${name}" is not an interface name for ${detectLocal.mode}. Use up to 15 letters, digits, ".", "_", "@" or "-".`,
  )
}
