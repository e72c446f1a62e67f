import type { EndpointAddress } from '../balancer/balancer.js'
import type { ServicePortCounters } from '../counters.js'
import type { Moved } from './byte-mover.js'

/** What one connection counts: for its service port, while bytes move, and for itself. */
export interface MovedCounts {
  readonly counters: Pick<ServicePortCounters, 'bytesToEndpoint' | 'bytesToClient'>
  readonly moved: { -readonly [K in keyof Moved]: Moved[K] }
}

/**
 * The sockets of one connection: the client's, which was accepted and is not read yet, and the endpoint's. A decision is never made
 * here: `TcpConnection` says where to connect to and when to end.
 */
export interface Carrier {
  readonly clientPort: number
  /** False once the client's socket is closed or is being closed. */
  readonly isOpen: boolean
  /** Begins to connect to an endpoint: one at a time. Then `connected` or `dialFailed` is called, unless `stopDialing` was. */
  dial(endpoint: EndpointAddress): void
  /** Gives the endpoint up that is being connected to, or that was connected to and not used. */
  stopDialing(): void
  /**
   * Carries bytes both ways from now on, with back-pressure and half-close: the end of one direction is passed on and the other goes
   * on. An error on one side resets the other.
   */
  carry(counts: MovedCounts): void
  /** Resets both sides. */
  reset(): void
  /** For logs. */
  addresses(): Readonly<Record<'client' | 'entrance' | 'source' | 'endpoint', string>>
}

/** What a carrier tells. */
export interface CarrierEvents {
  connected(): void
  dialFailed(error: NodeJS.ErrnoException): void
  /** A socket has failed. */
  failed(side: 'client' | 'endpoint', message: string): void
  /** Everything is closed. Called once, last. */
  ended(): void
}
