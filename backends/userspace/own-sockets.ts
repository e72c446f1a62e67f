import { wildcards } from '@kpng/dataplane'
import type { Place } from './capture/capture.js'
import type { Portal } from './portal.js'

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

  /** @param isOwn whether the address is one of this node's, where a socket on all addresses answers too */
  has({ ip, port }: Place, { family, protocol }: Portal, isOwn: boolean): boolean {
    return (
      this.#uses.has(keyOf(ip, port, protocol)) || (isOwn && this.#uses.has(keyOf(wildcards[family], port, protocol)))
    )
  }
}

const keyOf = (ip: string, port: number, protocol: Portal['protocol']): string => `${ip}|${port}|${protocol}`

function keysOf({ family, protocol, address, port }: Portal, place: Place): Set<string> {
  return new Set([keyOf(address || wildcards[family], port, protocol), keyOf(place.ip, place.port, protocol)])
}
