import { CidrSet, parseCidrs } from '@kpng/api'

const kinds = [
  { kind: 'loopback', cidrs: new CidrSet(parseCidrs(['127.0.0.0/8', '::1/128'])) },
  { kind: 'link-local', cidrs: new CidrSet(parseCidrs(['169.254.0.0/16', 'fe80::/10'])) },
  { kind: 'unspecified', cidrs: new CidrSet(parseCidrs(['0.0.0.0/8', '::/128'])) },
  { kind: 'multicast', cidrs: new CidrSet(parseCidrs(['224.0.0.0/4', '255.255.255.255/32', 'ff00::/8'])) },
] as const

export type UnsafeKind = (typeof kinds)[number]['kind']

/**
 * Why traffic must not be sent to an address, or taken from it; undefined if the address is safe. The API server refuses such
 * endpoints too: a proxy connects as the node, so whoever may write EndpointSlices could reach the node's local ports or the
 * cloud's metadata service through it.
 */
export function unsafeKindOf(ip: string, allowLoopback: boolean): UnsafeKind | undefined {
  const kind = kinds.find(({ cidrs }) => cidrs.has(ip))?.kind
  return kind === 'loopback' && allowLoopback ? undefined : kind
}

export const isLoopback = (ip: string): boolean => kinds[0].cidrs.has(ip)
