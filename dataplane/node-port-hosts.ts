import { CidrSet, type Family, familyOf } from '@kpng/api'
import type { NodeFacts } from './node.js'

/** What a socket that listens on all addresses of a family is bound to. */
export const wildcards: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0', IPv6: '::' }

/**
 * Where the sockets of node ports listen: on those of the machine's addresses that serve node ports.
 * @param addresses of the machine's interfaces
 */
export function nodePortHosts(
  { nodePortCidrs }: Pick<NodeFacts, 'nodePortCidrs'>,
  family: Family,
  addresses: readonly { readonly ip: string }[],
): string[] {
  const cidrs = nodePortCidrs[family]
  if (cidrs.some(({ bits }) => bits === 0)) return [wildcards[family]]
  const served = new CidrSet(cidrs)
  const hosts = addresses.filter(({ ip }) => familyOf(ip) === family && served.has(ip)).map(({ ip }) => ip)
  return [...new Set(hosts)]
}
