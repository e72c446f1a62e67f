import { KpngError, type Log, messageOf } from '@kpng/api'
import type { OpenPortal, Steering } from './capture.js'
import type { RunProgram } from './program.js'

/** The arguments that delete what the kernel remembers of UDP packets to a portal. */
export const conntrackArguments = ({ portal }: OpenPortal): string[] => [
  '-D',
  ...(portal.family === 'v6' ? ['-f', 'ipv6'] : []),
  '-p',
  'udp',
  ...(portal.ip === '' ? [] : ['--orig-dst', portal.ip]),
  '--orig-port-dst',
  String(portal.port),
]

let missing = false

/**
 * Makes clients that keep sending from one port (DNS resolvers do) be steered anew: the kernel would go on sending their
 * packets to the proxy port it first chose, for as long as they keep sending.
 */
export async function forgetUdpFlows(steering: Steering, run: RunProgram, log: Log): Promise<void> {
  const done = new Set<string>()
  for (const portal of movedPortals(steering)) {
    if (portal.portal.protocol !== 'udp' || missing) continue
    const args = conntrackArguments(portal)
    if (done.has(args.join(' '))) continue
    done.add(args.join(' '))
    try {
      await run('conntrack', args)
    } catch (error) {
      if (error instanceof KpngError && error.code === 'unsupported') {
        missing = true
        log.warn('conntrack is not installed: UDP clients that keep their port may be lost when a service changes')
      }
      // It also fails when there was nothing to delete, which is the usual case.
      else log.detail(5, 'No UDP flows were deleted', { portal: portal.portal.servicePort, said: messageOf(error) })
    }
  }
}

/** Portals that were not open before at the same proxy port: only their old flows lead nowhere. */
export function movedPortals({ removed, added }: Steering): OpenPortal[] {
  const placeOf = ({ portal, place }: OpenPortal) => `${portal.ip}|${portal.port}|${portal.protocol}|${place.port}`
  const before = new Set(removed.map(placeOf))
  const after = new Set(added.map(placeOf))
  return [...removed, ...added].filter((portal) => !(before.has(placeOf(portal)) && after.has(placeOf(portal))))
}
