import { type Cidr, type Family, parseCidrs } from '@kpng/api'
import type { NodeFacts } from '@kpng/dataplane'
import { type Elements, mergeRanges, put, rangeOf, setPath, tableFamily } from '@kpng/linux/nftables'
import { names } from '../rules/names.js'

/** The elements that come from the node and from the cluster's ranges. */
export function nodeElements(node: NodeFacts, { masqueradeAll }: { masqueradeAll: boolean }): Elements {
  const elements: Elements = new Map()
  for (const family of node.families) {
    const pods = node.pods.cidrs.filter((cidr) => cidr.family === family)
    putRanges(elements, family, names.pods, pods)
    // If pods cannot be recognised, no client of a cluster IP is masqueraded.
    const unmasqueraded = pods.length > 0 ? pods : parseCidrs([everyAddress[family]])
    if (!masqueradeAll) putRanges(elements, family, names.unmasqueraded, unmasqueraded)
    putRanges(elements, family, names.nodePortAddresses, node.nodePortCidrs[family])
    putRanges(elements, family, names.serviceCidrs, node.serviceCidrs.cidrs)
  }
  return elements
}

const everyAddress: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0/0', IPv6: '::/0' }

function putRanges(elements: Elements, family: Family, name: string, cidrs: readonly Cidr[]): void {
  const ranges = cidrs.filter((cidr) => cidr.family === family).map(rangeOf)
  for (const { first, last } of mergeRanges(ranges)) put(elements, setPath(tableFamily[family], name), first + last)
}
