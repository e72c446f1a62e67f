/** How long things may take. Tests make these times short. */
export interface ReflectorTiming {
  readonly backoff: BackoffOptions
  /** The shortest and the longest watch to ask the server for, in seconds; each watch gets a random length in between. */
  readonly watchSeconds: readonly [shortest: number, longest: number]
  /**
   * How much longer than asked for a watch may last before it counts as hung. TCP keepalive finds connections that died silently, but
   * not behind a proxy or a load balancer that keeps its side open.
   */
  readonly watchGraceMs: number
  /**
   * A watch that brings nothing for this long is replaced by a new one from the same version, if the server sends bookmarks. API servers send one
   * about once a minute. Those that have never sent one are not held to it.
   */
  readonly quietWatchMs: number
  /** A new watch counts as connected when it has brought something, or has lived this long. */
  readonly connectedAfterMs: number
  /** How long the server may take to begin an answer, and how long it may pause within a list. */
  readonly answerTimeoutMs: number
  /**
   * If nothing comes in a streaming list for this long, and the server has not said that it is complete, it is an ordinary
   * watch: the server ignored `sendInitialEvents`.
   */
  readonly initialEventsQuietMs: number
  /** How long to read lists in pages after a server seemed to have no streaming lists: it may only have been slow, or be updated. */
  readonly streamingRecheckMs: number
  /** A watch that ends sooner counts as a failure, whatever the server says: to reconnect at once would be a busy loop. */
  readonly shortWatchMs: number
  /** How often to look again for an optional resource that the server does not have. */
  readonly absentRecheckMs: number
  /** The longest Retry-After that is honoured. */
  readonly maxRetryAfterMs: number
}

export const defaultTiming: ReflectorTiming = {
  backoff: { minMs: 800, maxMs: 30_000, resetAfterMs: 30_000 },
  watchSeconds: [300, 600],
  watchGraceMs: 30_000,
  quietWatchMs: 180_000,
  connectedAfterMs: 5000,
  answerTimeoutMs: 60_000,
  initialEventsQuietMs: 10_000,
  streamingRecheckMs: 300_000,
  shortWatchMs: 1_000,
  absentRecheckMs: 600_000,
  maxRetryAfterMs: 300_000,
}

export interface BackoffOptions {
  /** The first delay. Default 800. */
  readonly minMs?: number
  /** No delay is longer, unless the server itself asks for it. Default 30,000. */
  readonly maxMs?: number
  /** A watch that lived this long was healthy: after it, delays start at `minMs` again. Default 60,000. */
  readonly resetAfterMs?: number
  /** Default Math.random. */
  readonly random?: () => number
}

/**
 * Retry delays that double from failure to failure. Each is shortened by a random part of up to half its length, so that the
 * watchers of a server that restarts do not all come back at once.
 */
export class Backoff {
  readonly #minMs: number
  readonly #maxMs: number
  readonly #resetAfterMs: number
  readonly #random: () => number
  #nextMs: number

  constructor({ minMs = 800, maxMs = 30_000, resetAfterMs = 60_000, random = Math.random }: BackoffOptions = {}) {
    this.#minMs = minMs
    this.#maxMs = maxMs
    this.#resetAfterMs = resetAfterMs
    this.#random = random
    this.#nextMs = minMs
  }

  /** The delay after a failure of something that had lived for `livedMs`. */
  next(livedMs = 0): number {
    if (livedMs >= this.#resetAfterMs) this.#nextMs = this.#minMs
    const full = this.#nextMs
    this.#nextMs = Math.min(full * 2, this.#maxMs)
    return this.jittered(full)
  }

  jittered(ms: number): number {
    return ms * (0.5 + this.#random() / 2)
  }
}
