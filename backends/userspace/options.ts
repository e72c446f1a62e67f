import { KpngError, type Log, silentLog } from '@kpng/api'
import { parseCidr } from './address.js'
import type { BalancerClock } from './balancer/balancer.js'
import type { Capture } from './capture/capture.js'
import { noCapture } from './capture/none.js'
import type { ByteMover } from './tcp/byte-mover.js'
import { portableByteMover } from './tcp/portable-mover.js'

export interface UserspaceOptions {
  /** Default: says nothing. */
  readonly log?: Log
  /** How packets get to the proxy sockets. Default: `noCapture()`, listening on the services' own addresses. */
  readonly capture?: Capture
  /** How often portals are ensured, failed ones tried again and stale sessions cleaned up. Default 30,000. 0: never. */
  readonly syncPeriodMs?: number
  /**
   * How long a UDP client may be silent before its session ends. Default 10,000: a session that ends early changes the port that the
   * endpoint sees, which protocols with a state (QUIC, games) do not like. Those that ask once are many, but make room for each other.
   */
  readonly udpIdleTimeoutMs?: number
  /** UDP clients that one portal serves at the same time; each needs a file descriptor. One more ends the longest silent. Default 4,096. */
  readonly maxUdpSessions?: number
  /** How long connections to a removed endpoint or service may go on. 0: they are reset at once. Default: for ever. */
  readonly drainSeconds?: number
  /** How long each attempt to reach an endpoint may take, one after the other. Default: 250, 500, 1,000, 2,000. */
  readonly dialTimeoutsMs?: readonly number[]
  /** Ranges of pods, beyond those of this node that the source knows. Default: none. */
  readonly clusterCidrs?: readonly string[]
  /** Whether `spec.externalIPs` are served. Default true. */
  readonly externalIps?: boolean
  /** Endpoints on loopback addresses are used. For playgrounds on one machine only: it opens the node's local ports. */
  readonly allowLoopbackEndpoints?: boolean
  /** What carries the bytes. Default: `portableByteMover()`. */
  readonly byteMover?: ByteMover
  /** For tests. */
  readonly clock?: Partial<BalancerClock>
}

export type Settings = Required<Omit<UserspaceOptions, 'clock'>> & { readonly clock: BalancerClock }

const defaults = {
  syncPeriodMs: 30_000,
  udpIdleTimeoutMs: 10_000,
  maxUdpSessions: 4096,
  drainSeconds: Number.POSITIVE_INFINITY,
  dialTimeoutsMs: [250, 500, 1000, 2000],
  clusterCidrs: [],
  externalIps: true,
  allowLoopbackEndpoints: false,
}

/** Fills in the defaults; an option that makes no sense is named. */
export function settingsOf(options: UserspaceOptions): Settings {
  const settings: Settings = {
    ...defaults,
    log: silentLog,
    capture: noCapture(),
    byteMover: portableByteMover(),
    ...options,
    clock: { now: options.clock?.now ?? (() => performance.now()), random: options.clock?.random ?? Math.random },
  }
  for (const name of ['syncPeriodMs', 'udpIdleTimeoutMs', 'drainSeconds'] as const) {
    if (!(settings[name] >= 0)) throw wrong(name, settings[name], 'a number of at least 0')
  }
  if (!(settings.maxUdpSessions >= 1)) throw wrong('maxUdpSessions', settings.maxUdpSessions, 'a number of at least 1')
  if (settings.dialTimeoutsMs.length === 0 || !settings.dialTimeoutsMs.every((ms) => ms > 0)) {
    throw wrong('dialTimeoutsMs', settings.dialTimeoutsMs, 'one or more numbers above 0')
  }
  for (const cidr of settings.clusterCidrs)
    if (!parseCidr(cidr)) throw wrong('clusterCidrs', cidr, 'CIDRs such as 10.244.0.0/16')
  return settings
}

const wrong = (name: string, value: unknown, wanted: string): KpngError =>
  new KpngError('usage', `The option ${name} of the userspace backend is ${JSON.stringify(value)}; give ${wanted}.`)
