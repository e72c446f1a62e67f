import { KpngError, type Log, silentLog } from '@kpng/api'
import { type AddressRange, parseCidr } from './address.js'

/** How pods of this cluster are told from everybody else. As kube-proxy's `detectLocalMode`. */
export type DetectLocal =
  /** By the ranges that pods of the whole cluster have their addresses from. A family without a range: nobody is told apart. */
  | { readonly mode: 'ClusterCIDR'; readonly cidrs: readonly string[] }
  /** By the pod ranges of this node, from its Node object. */
  | { readonly mode: 'NodeCIDR' }
  /** By the bridge that the node's pods are on. */
  | { readonly mode: 'BridgeInterface'; readonly name: string }
  /** By how the names of the pods' interfaces begin. */
  | { readonly mode: 'InterfaceNamePrefix'; readonly prefix: string }

export interface NftOptions {
  /**
   * Which addresses of the node serve node ports: `primary` is the node's first address of each family; else CIDRs, and all
   * addresses of a family that has none among them, as in kube-proxy. Addresses of the loopback never do. Default `primary`.
   */
  readonly nodePortAddresses?: 'primary' | readonly string[]
  /** Whether `spec.externalIPs` are served. Default true. */
  readonly externalIps?: boolean
  /** Masquerade everything that goes to a cluster IP. Default false. */
  readonly masqueradeAll?: boolean
  /** Which bit of the packet mark means "to be masqueraded", 0 to 31. Default 14. */
  readonly masqueradeBit?: number
  /** Default: `ClusterCIDR` without a range, so that nobody is told apart. */
  readonly detectLocal?: DetectLocal
  /**
   * How elements reach the kernel: `netlink` speaks to it directly and needs the koffi library; `nft` runs the nft command
   * for each change. `auto` takes the first where it can. Default `auto`.
   */
  readonly writer?: 'netlink' | 'nft' | 'auto'
  /** Whether IPv6 is served. `auto`: where the host has it. Default `auto`. */
  readonly ipv6?: boolean | 'auto'
  /** How often somebody else's changes to our tables are looked for, in milliseconds. 0: never. Default 1000. */
  readonly driftCheckIntervalMs?: number
  /** Whether UDP flows to endpoints that no longer serve are deleted. Default true. */
  readonly deleteStaleFlows?: boolean
  /**
   * Whether new connections are counted by service port, which costs the first packet of each a lookup and each address and port
   * an element. Default false.
   */
  readonly counters?: boolean
  /** Default `nft`, found through PATH. */
  readonly nftCommand?: string
  /** Used for stale flows where the kernel cannot be asked directly. Default `conntrack`, found through PATH. */
  readonly conntrackCommand?: string
  /** Default: says nothing. */
  readonly log?: Log
}

/** The options as the backend uses them: checked, and with their defaults. */
export interface Settings extends Required<Omit<NftOptions, 'nodePortAddresses' | 'detectLocal'>> {
  readonly nodePortRanges: 'primary' | readonly AddressRange[]
  readonly detectLocal: DetectLocal
  readonly clusterRanges: readonly AddressRange[]
}

export function settingsOf(options: NftOptions = {}): Settings {
  const {
    nodePortAddresses = 'primary',
    externalIps = true,
    masqueradeAll = false,
    masqueradeBit = 14,
    detectLocal = { mode: 'ClusterCIDR', cidrs: [] },
    writer = 'auto',
    ipv6 = 'auto',
    driftCheckIntervalMs = 1000,
    deleteStaleFlows = true,
    counters = false,
    nftCommand = 'nft',
    conntrackCommand = 'conntrack',
    log = silentLog,
  } = options
  if (!Number.isInteger(masqueradeBit) || masqueradeBit < 0 || masqueradeBit > 31) {
    throw new KpngError(
      'usage',
      `masqueradeBit ${masqueradeBit} is no bit of a packet mark. Give a number from 0 to 31.`,
    )
  }
  if (!['netlink', 'nft', 'auto'].includes(writer)) {
    throw new KpngError('usage', `There is no writer "${writer}". Give netlink, nft or auto.`)
  }
  return {
    nodePortRanges: nodePortAddresses === 'primary' ? 'primary' : rangesOf(nodePortAddresses, 'nodePortAddresses'),
    externalIps,
    masqueradeAll,
    masqueradeBit,
    detectLocal: checkedDetectLocal(detectLocal),
    clusterRanges: detectLocal.mode === 'ClusterCIDR' ? rangesOf(detectLocal.cidrs, 'detectLocal.cidrs') : [],
    writer,
    ipv6,
    driftCheckIntervalMs,
    deleteStaleFlows,
    counters,
    nftCommand,
    conntrackCommand,
    log,
  }
}

function rangesOf(cidrs: readonly string[], option: string): AddressRange[] {
  return cidrs.map((cidr) => {
    const range = parseCidr(cidr)
    if (!range)
      throw new KpngError('usage', `"${cidr}" in ${option} is no CIDR. Write it like 10.0.0.0/8 or fd00::/64.`)
    return range
  })
}

/** Interface names end up in the text of the ruleset, so nothing but a name may pass. */
function checkedDetectLocal(detectLocal: DetectLocal): DetectLocal {
  const name =
    detectLocal.mode === 'BridgeInterface'
      ? detectLocal.name
      : detectLocal.mode === 'InterfaceNamePrefix'
        ? detectLocal.prefix
        : undefined
  if (name !== undefined && !/^[A-Za-z0-9_.@-]{1,15}$/.test(name)) {
    throw new KpngError(
      'usage',
      `"${name}" is no interface name for ${detectLocal.mode}. Use up to 15 letters, digits, ".", "_", "@" or "-".`,
    )
  }
  return detectLocal
}
