import { type Family, parseRanges } from './address.js'

export type Refusal = 'loopback' | 'link-local' | 'unspecified' | 'multicast'

// IPv4 ranges also match their IPv4-mapped IPv6 form (::ffff:127.0.0.1), which would be a way around them.
const refused: readonly [Refusal, ReturnType<typeof parseRanges>][] = [
  ['loopback', parseRanges(['127.0.0.0/8', '::1/128'])],
  ['link-local', parseRanges(['169.254.0.0/16', 'fe80::/10'])],
  ['unspecified', parseRanges(['0.0.0.0/8', '::/128'])],
  ['multicast', parseRanges(['224.0.0.0/4', '255.255.255.255/32', 'ff00::/8'])],
]

export const isLoopback = (ip: string, family: Family): boolean => refused[0]?.[1].has(ip, family) ?? false

/**
 * Why no connection may go to an endpoint's address. The API server refuses the same ones: whoever may write EndpointSlices
 * must not get into the node's local ports or its metadata service through the proxy, which connects as the node.
 */
export function refusalOf(ip: string, family: Family, allowLoopback: boolean): Refusal | undefined {
  const found = refused.find(([, ranges]) => ranges.has(ip, family))?.[0]
  return found === 'loopback' && allowLoopback ? undefined : found
}
