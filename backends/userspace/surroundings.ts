import type { Log } from '@kpng/api'
import type { Observations } from '@kpng/client'
import type { BalancerClock } from './balancer/balancer.js'
import type { Counters } from './counters.js'
import type { Descriptors } from './descriptors.js'
import type { Insiders } from './insiders.js'
import type { Later } from './later.js'
import type { OwnSockets } from './own-sockets.js'

/** What every service port and proxy socket of one thread shares. */
export interface Surroundings {
  readonly log: Log
  readonly clock: BalancerClock
  readonly counters: Pick<Counters, 'add' | 'remove'>
  readonly descriptors: Descriptors
  readonly insiders: Insiders
  readonly ownSockets: OwnSockets
  readonly later: Later
  readonly dialTimeoutsMs: readonly number[]
  readonly udpIdleTimeoutMs: number
  readonly maxUdpSessions: number
  /** Infinity: connections to a removed endpoint may take as long as they like. */
  readonly drainMs: number
  /** The listener may be set while the backend runs. */
  readonly observations: Pick<Observations, 'listener'>
}
