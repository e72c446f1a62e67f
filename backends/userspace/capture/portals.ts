import { type Family, isLoopback, KpngError, parseIp } from '@kpng/api'
import { wildcards } from '@kpng/dataplane'
import type { Portal } from '../portal.js'
import type { NodeAddresses, Place } from './capture.js'
import { type PortRange, proxyPorts } from './proxy-ports.js'

export interface PortalOptions {
  /** Where proxy sockets listen, one address per family. Default: all addresses (`0.0.0.0`, `::`), the node's own for UDP. */
  readonly bindAddresses?: readonly string[]
  /** Proxy ports come from here. Default: any free port. */
  readonly portRange?: PortRange
}

/** The one address at which the proxy sockets of a protocol listen. Undefined: all addresses. */
export type BoundIps = Readonly<Record<Portal['protocol'], string | undefined>>

/** Where the proxy sockets behind Linux portals listen. */
export function portalPlaces({ bindAddresses = [], portRange }: PortalOptions) {
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
