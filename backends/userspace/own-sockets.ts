import type { Family } from './address.js'
import type { Place } from './capture/capture.js'
import { type Portal, type Protocol, portalAddress } from './portal.js'

/**
 * Where this proxy itself can be reached. An endpoint there would make the proxy connect to itself, again and again, until
 * every descriptor is used up.
 */
export class OwnSockets {
  readonly #uses = new Map<string, number>()

  add(portal: Portal, place: Place): void {
    for (const key of keysOf(portal, place)) this.#uses.set(key, (this.#uses.get(key) ?? 0) + 1)
  }

  remove(portal: Portal, place: Place): void {
    for (const key of keysOf(portal, place)) {
      const uses = (this.#uses.get(key) ?? 0) - 1
      if (uses > 0) this.#uses.set(key, uses)
      else this.#uses.delete(key)
    }
  }

  /** `isOwn`: whether the address is one of this node's, where a socket on all addresses answers too. */
  has(ip: string, family: Family, port: number, protocol: Protocol, isOwn: boolean): boolean {
    return (
      this.#uses.has(keyOf(ip, port, protocol)) || (isOwn && this.#uses.has(keyOf(anyAddress[family], port, protocol)))
    )
  }
}

const anyAddress = { v4: '0.0.0.0', v6: '::' } as const

const keyOf = (ip: string, port: number, protocol: Protocol): string => `${ip}|${port}|${protocol}`

function keysOf(portal: Portal, place: Place): Set<string> {
  const { family, protocol } = portal
  return new Set([keyOf(portal.ip || anyAddress[family], portal.port, protocol), keyOf(place.ip, place.port, protocol)])
}

/** For messages: the portal's name and address. */
export const describePortal = (portal: Portal): { servicePort: string; portal: string } => ({
  servicePort: portal.servicePort,
  portal: portalAddress(portal),
})
