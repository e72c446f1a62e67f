import { families } from '@kpng/api'
import type { Portal } from '../portal.js'
import type { Capture, NodeAddresses } from './capture.js'

/** A portal's own address; for a node port, the addresses of this node that serve node ports. */
export const ownHosts = (
  { kind, family, protocol, address }: Portal,
  { nodePortHosts, nodePortIps }: NodeAddresses,
): readonly string[] =>
  // A UDP socket on the wildcard address answers from the address that the routes choose, which may not be the one that was asked.
  kind !== 'nodePort' ? [address] : protocol === 'udp' ? nodePortIps[family] : nodePortHosts[family]

/**
 * No capture: the service's addresses must be this machine's already (loopback aliases, addresses that somebody else added).
 * Needs no rights but those for ports below 1024, and works on any operating system.
 */
export function noCapture(): Capture {
  const nothing = async () => {}
  return {
    name: 'none',
    listensOnPortals: true,
    families,
    setup: nothing,
    hosts: ownHosts,
    allocate: async ({ port }) => port,
    release: nothing,
    steer: nothing,
    cleanup: nothing,
  }
}
