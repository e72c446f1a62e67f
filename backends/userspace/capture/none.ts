import type { Portal } from '../portal.js'
import type { Capture, Place } from './capture.js'

const anyAddress = { v4: '0.0.0.0', v6: '::' } as const

/** Listens at a portal's own address; a node port on every address of the machine. */
export const ownPlace = ({ ip, family, port }: Portal): Place => ({ ip: ip === '' ? anyAddress[family] : ip, port })

/**
 * No capture: the service's addresses must be this machine's already (loopback aliases, addresses that somebody else added).
 * Needs no rights but those for ports below 1024, and works on any operating system.
 */
export function noCapture(): Capture {
  const nothing = async () => {}
  return {
    name: 'none',
    listensOnPortals: true,
    setup: nothing,
    place: async (portal) => ownPlace(portal),
    isRight: () => true,
    release: nothing,
    steer: nothing,
    cleanup: nothing,
  }
}
