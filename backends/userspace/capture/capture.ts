import type { Family } from '@kpng/api'
import type { Portal } from '../portal.js'

/** Where a proxy socket listens. Port 0: any that is free. */
export interface Place {
  readonly ip: string
  readonly port: number
}

/** A portal with a proxy socket that listens. Never changed in place: a new object takes its place. */
export interface OpenPortal {
  readonly portal: Portal
  readonly place: Place
}

/** What captures know of this node. Never changed in place. */
export interface NodeAddresses {
  /** The ranges of clients inside the cluster: pods, and this node's addresses. */
  readonly insideCidrs: readonly string[]
  /** An address at which proxy ports can be reached, from here and from elsewhere. Undefined: there is none. */
  readonly nodeIps: Readonly<Record<Family, string | undefined>>
  /** Which of the node's addresses serve node ports. */
  readonly nodePortCidrs: Readonly<Record<Family, readonly string[]>>
  /** The same as addresses to listen on: those of the machine's interfaces, or the wildcard. */
  readonly nodePortHosts: Readonly<Record<Family, readonly string[]>>
  /** The same, each address by itself. */
  readonly nodePortIps: Readonly<Record<Family, readonly string[]>>
}

export interface Steering {
  /**
   * `changes`: write what differs since the last steering that succeeded. `check`: also look whether the machine still holds the
   * rest, and write it again if not. `full`: nothing is known of what the machine holds; write everything.
   */
  readonly extent: 'changes' | 'check' | 'full'
  /** Every open portal. */
  readonly open: readonly OpenPortal[]
  /** What is new and what is void since the last steering that succeeded; a portal that changed is in both. */
  readonly added: readonly OpenPortal[]
  readonly removed: readonly OpenPortal[]
  readonly node: NodeAddresses
}

/** Gets clients' packets from a service's addresses to the proxy sockets. */
export interface Capture {
  readonly name: 'none' | 'nft' | 'iptables' | 'netsh'
  /**
   * The proxy sockets listen at the portals' own addresses. Then a portal without endpoints is closed, which refuses its
   * clients as the system itself does; and an old owner of an address must let go before the new one takes it.
   */
  readonly listensOnPortals: boolean
  /** The families that can be served. Both until `setup` finds out. */
  readonly families: readonly Family[]
  /** What only one process may write. Missing: each process has its own. */
  readonly lockName?: string
  /** Checks the machine; the error says what is missing. `onNotice` says that `missing` has something to tell, for those who learn of it at once. */
  setup(onNotice: () => void): Promise<void>
  /** The addresses at which a portal needs a proxy socket. */
  hosts(portal: Portal, node: NodeAddresses): readonly string[]
  /** The port for a proxy socket at one of them. May make the address usable first. */
  allocate(portal: Portal, host: string): Promise<number>
  /** Takes back what `allocate` gave. Called when no packet is steered there any more. */
  release(portal: Portal, place: Place): Promise<void>
  /** Makes packets reach exactly the open portals. */
  steer(steering: Steering): Promise<void>
  /** What of ours somebody else took away as a whole, as a sentence; undefined if nothing. Fast, so that it can be asked often. */
  missing?(): Promise<string | undefined>
  /** Takes everything of ours away, also what a crashed predecessor left. */
  cleanup(): Promise<void>
}
