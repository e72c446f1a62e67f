import type { NodeIps } from '../insiders.js'
import type { Portal } from '../portal.js'
import type { Fates } from '../usable-endpoints.js'

/** Where a proxy socket listens. Port 0: any that is free. */
export interface Place {
  readonly ip: string
  readonly port: number
}

/** A portal whose proxy socket listens. Never changed in place: a new object takes its place. */
export interface OpenPortal {
  readonly portal: Portal
  readonly place: Place
  readonly fates: Fates
}

export interface Steering {
  /** Every open portal. */
  readonly open: readonly OpenPortal[]
  /** What is new and what is void since the last steering that succeeded; a changed portal is in both. */
  readonly added: readonly OpenPortal[]
  readonly removed: readonly OpenPortal[]
  /** Nothing is known of what the machine holds: write everything. */
  readonly full: boolean
  /** The ranges of clients inside the cluster, without this node's own addresses. */
  readonly insideCidrs: readonly string[]
  /** Addresses of this node at which a proxy port can be reached. */
  readonly nodeIps: NodeIps
}

/** Gets clients' packets from a service's addresses to the proxy sockets. */
export interface Capture {
  readonly name: 'none' | 'nft' | 'iptables' | 'netsh'
  /**
   * The proxy sockets listen at the portals' own addresses. Then a portal without endpoints is closed, which refuses its
   * clients as the system itself does; and an old owner of an address must let go before the new one takes it.
   */
  readonly listensOnPortals: boolean
  /** Checks the machine; the error says what is missing. */
  setup(): Promise<void>
  /** Where the proxy socket of a portal shall listen. May make the address usable first. */
  place(portal: Portal, nodeIps: NodeIps): Promise<Place>
  /** Whether a place given before still is right, now that the node has these addresses. */
  isRight(portal: Portal, place: Place, nodeIps: NodeIps): boolean
  /** Takes back what `place` gave. Called when no packet is steered there any more. */
  release(portal: Portal, place: Place): Promise<void>
  /** Makes packets reach exactly the open portals. */
  steer(steering: Steering): Promise<void>
  /** Takes everything of ours away, also what a crashed predecessor left. */
  cleanup(): Promise<void>
}
