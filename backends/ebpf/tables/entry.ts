import { CidrSet, type Family, isLoopback } from '@kpng/api'
import { type Frontend, type FrontendEndpoint, isWholeAddress, type NodeFacts } from '@kpng/dataplane'
import { frontendKeyOf, mappedBytes, nodeAddress } from '../layout.js'
import { keyText } from './hash-table.js'

/** What the maps hold for one frontend. */
export interface Entry {
  readonly key: string
  readonly endpoints: readonly Pick<FrontendEndpoint, 'ip' | 'port'>[]
  /** 0: no session affinity. */
  readonly affinitySeconds: number
}

/**
 * Why a frontend is left to nftables, as the end of a sentence; undefined if sockets are sent to its endpoints. All clients that have sockets here
 * are pods of this node or the node itself, so only `inside` counts.
 */
export function whyLeftToNft({ protocol, inside, allowedSources, ...frontend }: Frontend): string | undefined {
  if (isWholeAddress({ ...frontend, protocol })) return 'the Service has the whole address'
  if (protocol !== 'tcp') return `the protocol is ${protocol.toUpperCase()}`
  // A socket that is not bound has no source address yet when it connects.
  if (allowedSources) return 'only some sources may connect'
  if (inside.endpoints.length === 0) return 'it has no endpoint'
  return undefined
}

/** The address in the key of a node port. It has one frontend per family, and their endpoints differ. */
const nodePortAddress: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0', IPv6: '::' }

export const keyOf = ({
  kind,
  family,
  address,
  port,
}: Pick<Frontend, 'kind' | 'family' | 'address' | 'port'>): string =>
  keyText(frontendKeyOf(kind === 'nodePort' ? nodePortAddress[family] : address, port))

/** Undefined: nftables serves it. */
export function entryOf(frontend: Frontend): Entry | undefined {
  if (whyLeftToNft(frontend) !== undefined) return undefined
  return {
    key: keyOf(frontend),
    endpoints: frontend.inside.endpoints,
    affinitySeconds: frontend.sessionAffinitySeconds ?? 0,
  }
}

/**
 * The addresses on which sockets of this node reach node ports, and whether only the node's own namespace does.
 * @param addresses of the machine's interfaces
 */
export function nodeAddressEntries(
  { nodePortCidrs }: Pick<NodeFacts, 'nodePortCidrs'>,
  addresses: readonly { readonly ip: string; readonly family: Family; readonly isLinkLocal: boolean }[],
  servesLoopback: boolean,
): Map<string, number> {
  const served = { IPv4: new CidrSet(nodePortCidrs.IPv4), IPv6: new CidrSet(nodePortCidrs.IPv6) }
  const entries = new Map<string, number>()
  for (const { ip, family, isLinkLocal } of addresses) {
    // Such an address is on another interface in each namespace.
    if (isLinkLocal || !served[family].has(ip)) continue
    const onlyHost = isLoopback(ip)
    if (onlyHost && !servesLoopback) continue
    entries.set(keyText(mappedBytes(ip)), onlyHost ? nodeAddress.onlyHost : 0)
  }
  return entries
}
