import { KpngError } from '@kpng/api'
import { type Family, parseIp } from '../address.js'
import type { NodeIps } from '../insiders.js'
import type { Portal, Protocol } from '../portal.js'
import { isLoopback } from '../refused-address.js'
import type { Place } from './capture.js'
import { type PortRange, proxyPorts } from './proxy-ports.js'

export interface PortalOptions {
  /** Where proxy sockets listen, one address a family. Default: all addresses (`0.0.0.0`, `::`), the node's own for UDP. */
  readonly bindAddresses?: readonly string[]
  /** Proxy ports come from here. Default: any free port. */
  readonly portRange?: PortRange
}

const anyAddress = { v4: '0.0.0.0', v6: '::' } as const

/** Where the proxy sockets behind Linux portals listen. */
export function portalPlaces({ bindAddresses = [], portRange }: PortalOptions) {
  const ports = proxyPorts(portRange)
  const bound = new Map<Family, string>()
  for (const text of bindAddresses) {
    const address = parseIp(text)
    if (!address)
      throw new KpngError('usage', `The bind address "${text}" is not an IP address; write one, such as 0.0.0.0.`)
    if (isLoopback(address.ip, address.family)) {
      throw new KpngError(
        'usage',
        `Portals cannot lead to ${text}: packets from other machines never reach a loopback address. Give an address of an interface, or 0.0.0.0.`,
      )
    }
    if (address.ip !== anyAddress[address.family]) bound.set(address.family, address.ip)
  }
  // A TCP connection answers from the address it was accepted at. A UDP socket on all addresses answers from the one that the routes
  // choose, which conntrack does not know when the packet was led to another: it gets one address, and packets are led there.
  const boundIp = (family: Family, protocol: Protocol, nodeIps: NodeIps): string | undefined =>
    bound.get(family) ?? (protocol === 'udp' ? nodeIps[family] : undefined)
  const ipOf = ({ family, protocol }: Portal, nodeIps: NodeIps): string =>
    boundIp(family, protocol, nodeIps) ?? anyAddress[family]
  return {
    /** The one address at which the proxy sockets of a protocol listen. Undefined: all addresses. */
    boundIp,
    place: async (portal: Portal, nodeIps: NodeIps): Promise<Place> => ({
      ip: ipOf(portal, nodeIps),
      port: ports.allocate(),
    }),
    isRight: (portal: Portal, { ip }: Place, nodeIps: NodeIps): boolean => ip === ipOf(portal, nodeIps),
    release: async (_portal: Portal, { port }: Place): Promise<void> => ports.release(port),
  }
}
