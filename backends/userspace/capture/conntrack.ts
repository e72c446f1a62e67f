import { type Family, families, KpngError, type Log, messageOf } from '@kpng/api'
import type { OpenPortal, Steering } from './capture.js'
import type { RunProgram } from './program.js'
import { toPortals, type UdpDestination, udpDestinations } from './udp-destinations.js'

const familyWord = { IPv4: 'ipv4', IPv6: 'ipv6' } as const

export const listArguments = (family: Family): string[] => ['-L', '-f', familyWord[family], '-p', 'udp']

/** The arguments that delete what the kernel remembers of UDP packets to an address. */
export const deleteArguments = (family: Family, { ip, port }: UdpDestination): string[] => [
  ...['-D', '-f', familyWord[family], '-p', 'udp'],
  ...['--orig-dst', ip, '--orig-port-dst', String(port)],
]

let missing = false

/**
 * Makes clients that keep sending from one port (DNS resolvers do) be steered anew: the kernel would go on sending their
 * packets to the proxy port it first chose, for as long as they keep sending. The kernel's table is read once for all portals: a
 * program for each would take longer than everything else together.
 */
export async function forgetUdpFlows(
  steering: Pick<Steering, 'removed' | 'added'>,
  run: RunProgram,
  log: Log,
): Promise<void> {
  const moved = movedPortals(steering).filter(({ portal }) => portal.protocol === 'udp')
  for (const family of families) {
    const portals = moved.flatMap(({ portal }) => (portal.family === family ? [portal] : []))
    if (portals.length === 0 || missing) continue
    try {
      const listed = udpDestinations(await run('conntrack', listArguments(family)))
      for (const destination of toPortals(listed, portals)) await forget(family, destination, run, log)
    } catch (error) {
      if (error instanceof KpngError && error.code === 'unsupported') {
        missing = true
        log.warn('conntrack is not installed: UDP clients that keep their port may be lost when a service changes')
      } else
        log.warn('Old UDP flows cannot be listed: clients that keep their port may be lost', {
          error: messageOf(error),
        })
    }
  }
}

async function forget(family: Family, destination: UdpDestination, run: RunProgram, log: Log): Promise<void> {
  try {
    await run('conntrack', deleteArguments(family, destination))
  } catch (error) {
    // It also fails when there is nothing left to delete: flows end of their own accord.
    log.detail(5, 'No UDP flows were deleted', { ...destination, said: messageOf(error) })
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
