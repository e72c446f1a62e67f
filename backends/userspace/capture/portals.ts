import { type Family, isLoopback, KpngError, parseIp } from '@kpng/api'
import { wildcards } from '@kpng/dataplane'
import type { Portal } from '../portal.js'
import type { NodeAddresses, Place } from './capture.js'
import { type PortRange, proxyPorts } from './proxy-ports.js'

/** The name of the main proxy's tables. */
export const defaultTable = 'kpng-userspace'

export interface PortalOptions {
  /**
   * The name of our nftables tables; the names of our iptables chains are made from it. Two proxies on one node, such as the main one and a
   * specialised one, need two names. `cleanup` takes away what has this name; without a name, what any kpng left. Default `kpng-userspace`.
   */
  readonly table?: string
  /** Where proxy sockets listen, one address per family. Default: all addresses (`0.0.0.0`, `::`), the node's own for UDP. */
  readonly bindAddresses?: readonly string[]
  /** Proxy ports come from here. Default: any free port. */
  readonly portRange?: PortRange
}

/** The one address at which the proxy sockets of a protocol listen. Undefined: all addresses. */
export type BoundIps = Readonly<Record<Portal['protocol'], string | undefined>>

/** Where the proxy sockets behind Linux portals listen. */
export function portalPlaces({ bindAddresses = [], portRange, table = defaultTable }: PortalOptions) {
  // The name becomes part of rules.
  if (table !== defaultTable && !/^kpng-userspace-[a-zA-Z0-9._-]{1,63}$/.test(table)) {
    throw new KpngError(
      'usage',
      `"${table}" is not a name for the tables of this proxy. Give ${defaultTable}, or ${defaultTable}- and letters, digits, dots and dashes.`,
    )
  }
  const ports = proxyPorts(portRange)
  const bound = new Map<Family, string>()
  for (const text of bindAddresses) {
    const address = parseIp(text)
    if (!address)
      throw new KpngError('usage', `The bind address "${text}" is not an IP address; write one, such as 0.0.0.0.`)
    if (isLoopback(address.text)) {
      throw new KpngError(
        'usage',
        `Portals cannot lead to ${text}: packets from other machines never reach a loopback address. Give an address of an interface, or 0.0.0.0.`,
      )
    }
    if (address.text !== wildcards[address.family]) bound.set(address.family, address.text)
  }
  // A TCP connection answers from the address it was accepted at. A UDP socket on all addresses answers from the one that the routes
  // choose, which conntrack does not know when the packet was led to another: it gets one address, and packets are led there.
  const boundIps = (family: Family, { nodeIps }: NodeAddresses): BoundIps => ({
    tcp: bound.get(family),
    udp: bound.get(family) ?? nodeIps[family],
  })
  return {
    boundIps,
    hosts: ({ family, protocol }: Portal, node: NodeAddresses) => [
      boundIps(family, node)[protocol] ?? wildcards[family],
    ],
    allocate: async () => ports.allocate(),
    release: async (_portal: Portal, { port }: Place): Promise<void> => ports.release(port),
  }
}
