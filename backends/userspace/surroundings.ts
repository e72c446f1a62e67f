import type { Log } from '@kpng/api'
import type { Observations } from '@kpng/client'
import type { BalancerClock } from './balancer/balancer.js'
import type { Counters } from './counters.js'
import type { Descriptors } from './descriptors.js'
import type { Insiders } from './insiders.js'
import type { OwnSockets } from './own-sockets.js'
import type { ByteMover } from './tcp/byte-mover.js'

/** What every service port and proxy socket of one backend shares. */
export interface Surroundings {
  readonly log: Log
  readonly clock: BalancerClock
  readonly counters: Counters
  readonly descriptors: Descriptors
  readonly insiders: Insiders
  readonly ownSockets: OwnSockets
  readonly byteMover: ByteMover
  readonly dialTimeoutsMs: readonly number[]
  readonly udpIdleTimeoutMs: number
  readonly maxUdpSessions: number
  /** Infinity: connections to a removed endpoint may take as long as they like. */
  readonly drainMs: number
  /** The listener may be set while the backend runs. */
  readonly observations: Pick<Observations, 'listener'>
}
