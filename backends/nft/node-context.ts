import type { globalv1 } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import {
  type AddressRange,
  contains,
  everyAddress,
  type Family,
  mergeRanges,
  parseAddress,
  parseCidr,
} from './address.js'
import { type Elements, put } from './element.js'
import { names, setPath } from './names.js'
import type { Settings } from './options.js'

/** What the elements of a service depend on beside the service. */
export interface NodeContext {
  readonly families: readonly Family[]
  /** Those in which clients can be remembered. */
  readonly affinityFamilies: readonly Family[]
  readonly settings: Settings
  /** The node's own addresses as bytes, both families, the primary ones first. */
  readonly nodeAddresses: readonly string[]
  /** The ranges of the node's own pods. */
  readonly podRanges: readonly AddressRange[]
}

/** What is known of the machine, beside its Node object. */
export interface Machine {
  readonly families: readonly Family[]
  /** Default: all of them. */
  readonly affinityFamilies?: readonly Family[]
  /** Stand in for the addresses of the Node object where there is none, as with state files. */
  hostAddresses(): readonly string[]
}

export function nodeContext(node: globalv1.Node | undefined, machine: Machine, settings: Settings): NodeContext {
  const addresses = node && node.addresses.length > 0 ? node.addresses : machine.hostAddresses()
  return {
    families: machine.families,
    affinityFamilies: machine.affinityFamilies ?? machine.families,
    settings,
    nodeAddresses: addresses.flatMap((text) => parseAddress(text)?.bytes ?? []),
    podRanges: (node?.podCidrs ?? []).flatMap((cidr) => parseCidr(cidr) ?? []),
  }
}

/** Whether two contexts lead to the same elements. */
export const sameContext = (a: NodeContext, b: NodeContext): boolean =>
  JSON.stringify([a.families, a.nodeAddresses, a.podRanges]) ===
  JSON.stringify([b.families, b.nodeAddresses, b.podRanges])

/** Whether an endpoint of this address may be a pod on this node, even when nobody said so. */
export const isHere = ({ nodeAddresses, podRanges }: NodeContext, address: string): boolean =>
  nodeAddresses.includes(address) || podRanges.some((range) => contains(range, address))

/** The elements that come from the node, the cluster's ranges and the options. */
export function nodeElements(context: NodeContext, serviceCidrs: NodeView['serviceCidrs']): Elements {
  const elements: Elements = new Map()
  const cidrs = [...serviceCidrs.values()].flatMap(({ cidrs }) => cidrs.flatMap((cidr) => parseCidr(cidr) ?? []))
  for (const family of context.families) {
    const pods = podSources(family, context)
    putRanges(elements, family, names.pods, pods)
    // Where pods cannot be told from others, nobody is masqueraded on the way to a cluster IP.
    const unmasqueraded = pods.length > 0 ? pods : [everyAddress(family)]
    if (!context.settings.masqueradeAll) putRanges(elements, family, names.unmasqueraded, unmasqueraded)
    putRanges(elements, family, names.nodePortAddresses, nodePortRanges(family, context))
    putRanges(elements, family, names.serviceCidrs, cidrs)
  }
  return elements
}

function podSources(family: Family, { settings, podRanges }: NodeContext): AddressRange[] {
  const { mode } = settings.detectLocal
  const ranges = mode === 'ClusterCIDR' ? settings.clusterRanges : mode === 'NodeCIDR' ? podRanges : []
  return ranges.filter((range) => range.family === family)
}

function nodePortRanges(family: Family, { settings, nodeAddresses }: NodeContext): readonly AddressRange[] {
  if (settings.nodePortRanges !== 'primary') {
    const ranges = settings.nodePortRanges.filter((range) => range.family === family)
    return ranges.length > 0 ? ranges : [everyAddress(family)]
  }
  const primary = nodeAddresses.find((bytes) => bytes.length === (family === 'ip' ? 4 : 16))
  return primary === undefined ? [] : [{ family, first: primary, last: primary }]
}

function putRanges(elements: Elements, family: Family, name: string, ranges: readonly AddressRange[]): void {
  for (const { first, last } of mergeRanges(ranges.filter((range) => range.family === family))) {
    put(elements, setPath(family, name), first + last)
  }
}
