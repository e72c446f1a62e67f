import { type Portal, portalAddress } from './portal.js'

/**
 * Which addresses are cluster IPs. No other kind of portal may have them: whoever writes a Service could take another one's traffic by
 * naming its address as an external IP (CVE-2020-8554).
 */
export class ClusterIps {
  /** Names of portals by address. */
  readonly #wantedBy = new Map<string, Set<string>>()

  want(name: string, portal: Portal): void {
    // A portal whose address was a cluster IP may be another kind now.
    this.unwant(name, portal)
    if (portal.kind !== 'cluster-ip') return
    const names = this.#wantedBy.get(portalAddress(portal)) ?? new Set()
    this.#wantedBy.set(portalAddress(portal), names.add(name))
  }

  unwant(name: string, portal: Portal): void {
    const names = this.#wantedBy.get(portalAddress(portal))
    names?.delete(name)
    if (names?.size === 0) this.#wantedBy.delete(portalAddress(portal))
  }

  /** Whether a portal must not be open since its address is a cluster IP. */
  forbids(portal: Portal): boolean {
    return portal.kind !== 'cluster-ip' && this.#wantedBy.has(portalAddress(portal))
  }
}
