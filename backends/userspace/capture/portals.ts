import { KpngError } from '@kpng/api'
import { type Family, parseIp } from '../address.js'
import type { Portal } from '../portal.js'
import { isLoopback } from '../refused-address.js'
import type { Place } from './capture.js'
import { type PortRange, proxyPorts } from './proxy-ports.js'

export interface PortalOptions {
  /** Where proxy sockets listen, one address a family. Default: all addresses (`0.0.0.0`, `::`). */
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
  return {
    /** Undefined: all addresses. */
    boundIp: (family: Family): string | undefined => bound.get(family),
    place: async ({ family }: Portal): Promise<Place> => ({
      ip: bound.get(family) ?? anyAddress[family],
      port: ports.allocate(),
    }),
    release: async (_portal: Portal, { port }: Place): Promise<void> => ports.release(port),
  }
}
