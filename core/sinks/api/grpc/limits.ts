import { readFileSync } from 'node:fs'

/** What one server takes and how long it waits. Sizes in bytes unless the name says otherwise. */
export interface Limits {
  /**
   * The largest request message. Default 64 KiB: the largest that makes sense are the digests of 4,096 buckets, which are half of it. Each
   * call of each connection may keep that much of a message that never ends, so gRPC's usual 4 MiB would be 400 MiB for one client.
   */
  readonly maxRequestBytes: number
  /** All headers of one request together. Default 16 KiB. */
  readonly maxHeaderBytes: number
  /** Further connections are turned away. Default 20,000, or what the limit of open files allows less a reserve for everything else. */
  readonly maxConnections: number
  /**
   * Connections from one address (of IPv6: from one /64), so that one client cannot keep the others out. Default 2,000, and never more than a quarter
   * of `maxConnections`: many nodes may come through one load balancer.
   */
  readonly maxConnectionsPerPeer: number
  /** Calls at a time on one connection; the client queues the others. Default 100. */
  readonly maxStreamsPerConnection: number
  /** New calls per second on one connection, once `callBurst` is used up. More: the connection is closed. Default 100. */
  readonly callsPerSecond: number
  /** New calls on one connection that may come at once. Default 1,000: a node needs one call, and a few more after errors. */
  readonly callBurst: number
  /**
   * What HTTP/2 may keep for one connection (headers, stream state), before it refuses further streams. Default 16: a hundred
   * calls need less than 1, and messages are not counted, they wait in the calls.
   */
  readonly maxSessionMemoryMiB: number
  /** From accept to the TLS session, and from there to the client's first HTTP/2 SETTINGS. Default 10,000. */
  readonly setupTimeoutMs: number
  /** From the client's first HTTP/2 SETTINGS to its first call. Default 60,000. */
  readonly firstCallTimeoutMs: number
  /** How long a call that is over waits for the client to finish its side before the stream is reset. Default 5,000. */
  readonly lingerMs: number
  /** When the kernel starts to probe a silent TCP connection. Default 60,000. */
  readonly tcpKeepAliveMs: number
  /** How often the TLS files are looked at for a renewal. Default 60,000. */
  readonly tlsReloadMs: number
}

const defaults: Limits = {
  maxRequestBytes: 64 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 20_000,
  maxConnectionsPerPeer: 2000,
  maxStreamsPerConnection: 100,
  callsPerSecond: 100,
  callBurst: 1000,
  maxSessionMemoryMiB: 16,
  setupTimeoutMs: 10_000,
  firstCallTimeoutMs: 60_000,
  lingerMs: 5_000,
  tcpKeepAliveMs: 60_000,
  tlsReloadMs: 60_000,
}

/** Descriptors that are left for files, watches of the API server, and whatever else this process does. */
const reservedDescriptors = 256

/** All limits, from those that are given. @param openFiles how many descriptors this process may have; undefined if that is not known */
export function limitsOf(given: Partial<Limits> = {}, openFiles = openFilesLimit()): Limits {
  const limits = { ...defaults, ...given }
  if (given.maxConnections === undefined && openFiles !== undefined) {
    const room = openFiles - Math.min(reservedDescriptors, openFiles / 2)
    limits.maxConnections = Math.min(defaults.maxConnections, Math.floor(room))
  }
  if (given.maxConnectionsPerPeer === undefined) {
    limits.maxConnectionsPerPeer = Math.min(defaults.maxConnectionsPerPeer, Math.ceil(limits.maxConnections / 4))
  }
  return limits
}

/** Undefined where the system does not say it. Node has raised the limit as far as it may. */
function openFilesLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** Counts the new calls of one connection: a token bucket. Opening and resetting calls costs a client nothing, and the server a lot. */
export class CallRate {
  readonly #limits: Pick<Limits, 'callsPerSecond' | 'callBurst'>
  readonly #nowMs: () => number
  #left: number
  #filledAtMs: number

  constructor(limits: Pick<Limits, 'callsPerSecond' | 'callBurst'>, nowMs = () => performance.now()) {
    this.#limits = limits
    this.#nowMs = nowMs
    this.#left = limits.callBurst
    this.#filledAtMs = nowMs()
  }

  /** Takes one call. Returns whether it is within the limit. */
  take(): boolean {
    const { callsPerSecond, callBurst } = this.#limits
    const nowMs = this.#nowMs()
    this.#left = Math.min(callBurst, this.#left + ((nowMs - this.#filledAtMs) / 1000) * callsPerSecond)
    this.#filledAtMs = nowMs
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
