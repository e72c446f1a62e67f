import type { Portal } from '../portal.js'
import type { Capture, Place } from './capture.js'

/** Where node ports are opened: on every address of the machine, or on its loopback address only. */
export type NodePortScope = 'every address' | 'loopback'

const nodePortAddresses = {
  'every address': { v4: '0.0.0.0', v6: '::' },
  loopback: { v4: '127.0.0.1', v6: '::1' },
} as const

/** Listens at a portal's own address. A node port has none. */
export const ownPlace = ({ ip, family, port }: Portal, nodePorts: NodePortScope = 'every address'): Place => ({
  ip: ip === '' ? nodePortAddresses[nodePorts][family] : ip,
  port,
})

export interface NoCaptureOptions {
  /** Default: `every address`. */
  readonly nodePorts?: NodePortScope
}

/**
 * No capture: the service's addresses must be addresses of this machine already, for instance on loopback. Needs no privileges except for
 * ports below 1024, and works on any operating system.
 */
export function noCapture({ nodePorts }: NoCaptureOptions = {}): Capture {
  const nothing = async () => {}
  return {
    name: 'none',
    listensOnPortals: true,
    setup: nothing,
    place: async (portal) => ownPlace(portal, nodePorts),
    isRight: () => true,
    release: nothing,
    steer: nothing,
    cleanup: nothing,
  }
}
