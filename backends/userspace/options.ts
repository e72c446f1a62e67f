import { availableParallelism } from 'node:os'
import { KpngError, type Log, silentLog } from '@kpng/api'
import type { DataplaneOptions, Leftovers } from '@kpng/dataplane'
import type { BalancerClock } from './balancer/balancer.js'
import type { Capture } from './capture/capture.js'
import { noCapture } from './capture/none.js'
import { threadScript } from './splice/script.js'
import type { ByteMover } from './tcp/byte-mover.js'
import { portableByteMover } from './tcp/portable-mover.js'

export interface UserspaceOptions extends DataplaneOptions {
  /** Default: says nothing. */
  readonly log?: Log
  /** Of other backends: removed after the first sync that succeeds. Default: nothing is looked for. */
  readonly leftovers?: readonly Leftovers[]
  /** How packets get to the proxy sockets. Default: `noCapture()`, listening on the services' own addresses. */
  readonly capture?: Capture
  /** How often portals are checked, failed ones tried again and stale sessions cleaned up. Default 30,000. 0: never. */
  readonly syncPeriodMs?: number
  /** How often kpng looks whether somebody took away its rules, in milliseconds; less often where that takes long. Default 5,000. 0: never. */
  readonly driftCheckIntervalMs?: number
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
  /**
   * How TCP is forwarded. `splice`: in threads of their own, the kernel moves the bytes; Linux on x64 and arm64. `portable`: in this thread, with
   * the sockets of Node. Default: `splice` where it works, unless `byteMover` or `clock` is given.
   */
  readonly mover?: Mover
  /** How many threads forward with `splice`. Default: half of the processors, at least 1 and at most 4. */
  readonly spliceThreads?: number
  /** For tests: the script of such a thread. */
  readonly spliceScript?: URL
  /** What carries the bytes with `portable`. Default: `portableByteMover()`. */
  readonly byteMover?: ByteMover
  /** For tests. */
  readonly clock?: Partial<BalancerClock>
}

export type Mover = 'splice' | 'portable'

/** The options with their defaults. Those that all data planes share are checked by the FrontendTable. */
export type Settings = Required<Omit<UserspaceOptions, 'clock' | 'mover' | 'spliceScript' | keyof DataplaneOptions>> & {
  readonly clock: BalancerClock
  /** Undefined: the best that works. */
  readonly mover: Mover | undefined
  /** Undefined: there is none. */
  readonly spliceScript: URL | undefined
}

const defaults = {
  syncPeriodMs: 30_000,
  driftCheckIntervalMs: 5000,
  udpIdleTimeoutMs: 10_000,
  maxUdpSessions: 4096,
  drainSeconds: Number.POSITIVE_INFINITY,
  dialTimeoutsMs: [250, 500, 1000, 2000],
}

/** Fills in the defaults; an option that makes no sense is named. */
export function settingsOf(options: UserspaceOptions): Settings {
  const settings: Settings = {
    ...defaults,
    log: silentLog,
    leftovers: [],
    capture: noCapture(),
    byteMover: portableByteMover(),
    spliceThreads: Math.max(1, Math.min(4, Math.floor(availableParallelism() / 2))),
    spliceScript: threadScript(),
    mover: options.byteMover || options.clock ? 'portable' : undefined,
    ...options,
    clock: { now: options.clock?.now ?? (() => performance.now()), random: options.clock?.random ?? Math.random },
  }
  for (const name of ['syncPeriodMs', 'driftCheckIntervalMs', 'udpIdleTimeoutMs', 'drainSeconds'] as const) {
    if (!(settings[name] >= 0)) throw wrong(name, settings[name], 'a number of at least 0')
  }
  if (!(Number.isInteger(settings.spliceThreads) && settings.spliceThreads >= 1)) {
    throw wrong('spliceThreads', settings.spliceThreads, 'a whole number of at least 1')
  }
  if (!(settings.maxUdpSessions >= 1)) throw wrong('maxUdpSessions', settings.maxUdpSessions, 'a number of at least 1')
  if (settings.dialTimeoutsMs.length === 0 || !settings.dialTimeoutsMs.every((ms) => ms > 0)) {
    throw wrong('dialTimeoutsMs', settings.dialTimeoutsMs, 'one or more numbers above 0')
  }
  return settings
}

const wrong = (name: string, value: unknown, wanted: string): KpngError =>
  new KpngError('usage', `The option ${name} of the userspace backend is ${JSON.stringify(value)}; give ${wanted}.`)
