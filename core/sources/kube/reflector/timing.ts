import type { BackoffOptions } from './backoff.js'

/** How long things may take. Tests make them short. */
export interface ReflectorTiming {
  readonly backoff: BackoffOptions
  /** The shortest and the longest watch that is asked of the server, in seconds; each watch gets a length in between. */
  readonly watchSeconds: readonly [shortest: number, longest: number]
  /**
   * How much longer than asked for a watch may last before it counts as hung. Nothing shorter can tell a dead watch from one
   * on which nothing happens; connections that die without a word are found by TCP keepalive.
   */
  readonly watchGraceMs: number
  /** How long the server may take to begin an answer, and how long it may pause within a list. */
  readonly answerTimeoutMs: number
  /**
   * A streaming list in which nothing has come for so long and that has not been declared complete is an ordinary watch: the
   * server ignored what it was asked for.
   */
  readonly initialEventsQuietMs: number
  /** For how long lists are read in pages after a server seemed to have no streaming lists: it may have been slow, or be newer by then. */
  readonly streamingRecheckMs: number
  /** A watch that ends sooner is a failure, whatever the server says: reconnecting at once would be a busy loop. */
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
  answerTimeoutMs: 60_000,
  initialEventsQuietMs: 10_000,
  streamingRecheckMs: 300_000,
  shortWatchMs: 1_000,
  absentRecheckMs: 600_000,
  maxRetryAfterMs: 300_000,
}
