import { families, type Log, messageOf } from '@kpng/api'
import { deleteFlows, type Flow } from '@kpng/linux'
import type { OpenPortal, Steering } from './capture.js'

export interface StaleFlowOptions {
  readonly log: Log
  /** Default: the kernel's table of connections. */
  readonly remove?: typeof deleteFlows
}

/**
 * Makes clients that keep sending from one port (DNS resolvers do) be steered anew: the kernel would go on sending their packets
 * to the proxy port that it first chose, for as long as they keep sending. The table of connections is read once per family, not
 * once per portal. If that fails, the log says so once and portals are steered nevertheless.
 */
export function staleFlowRemoval({
  log,
  remove = deleteFlows,
}: StaleFlowOptions): (steering: Pick<Steering, 'removed' | 'added'>) => Promise<void> {
  let lastFailure: string | undefined
  return async (steering) => {
    const moved = movedPortals(steering).filter(({ portal }) => portal.protocol === 'udp')
    for (const family of families) {
      const portals = moved.flatMap(({ portal }) => (portal.family === family ? [portal] : []))
      if (portals.length === 0) continue
      const ports = [...new Set(portals.map(({ port }) => port))]
      // A node port may be any address of the node, and which addresses it had is not known any more.
      const addresses = new Set(portals.map(({ address, port }) => `${address}|${port}`))
      const isStale = ({ destination, destinationPort: port }: Flow) =>
        addresses.has(`${destination}|${port}`) || addresses.has(`|${port}`)
      try {
        const deleted = await remove({ family, protocol: 'udp', ports }, isStale)
        log.detail(5, 'Removed UDP flows of portals that moved', { family, flows: deleted })
        lastFailure = undefined
      } catch (error) {
        if (messageOf(error) === lastFailure) continue
        lastFailure = messageOf(error)
        log.warn(
          'Stale UDP flows cannot be removed: when a Service changes, UDP clients that keep their port may lose it until they pause',
          { error: lastFailure },
        )
      }
    }
  }
}

/** Portals that were not open before at the same place: only their old flows lead nowhere. */
export function movedPortals({ removed, added }: Pick<Steering, 'removed' | 'added'>): OpenPortal[] {
  const placeOf = ({ portal, place }: OpenPortal) =>
    [portal.family, portal.address, portal.port, portal.protocol, place.ip, place.port].join('|')
  const before = new Set(removed.map(placeOf))
  const after = new Set(added.map(placeOf))
  return [...removed, ...added].filter((portal) => !(before.has(placeOf(portal)) && after.has(placeOf(portal))))
}
