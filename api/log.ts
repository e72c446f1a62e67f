export type LogFields = Readonly<Record<string, unknown>>

/**
 * The log of kpng. Messages are constant sentences; everything that varies is a field. `detail` is shown only
 * if the verbosity (`-v`) is at least its level; guard costly fields with `shows`.
 *
 * Levels, as in kube-proxy: 1 connections and set-up, 2 one line per sync, 3 one line per object, 4 one line per connection, 5 and
 * up everything.
 */
export interface Log {
  /** Something does not work, and somebody should look. */
  error(message: string, fields?: LogFields): void
  /** Something is not as it should be; kpng works around it. */
  warn(message: string, fields?: LogFields): void
  /** What an operator wants to see in normal operation. */
  info(message: string, fields?: LogFields): void
  /** Shown if the verbosity is at least `level`. */
  detail(level: number, message: string, fields?: LogFields): void
  /** Whether `detail` at this level is shown. */
  shows(level: number): boolean
}

const nothing = () => {}

/** Logs nothing. */
export const silentLog: Log = { error: nothing, warn: nothing, info: nothing, detail: nothing, shows: () => false }

/** Says what is worth a line in the log: a trouble at once, and then once per minute while it lasts. */
export class OncePerMinute {
  readonly #nowMs: () => number
  readonly #troubles = new Map<string, { saidAtMs: number; times: number }>()

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Counts a trouble. Returns how often it came so far, or undefined if it should not be logged this time. */
  times(trouble: string): number | undefined {
    const known = this.#troubles.get(trouble) ?? { saidAtMs: Number.NEGATIVE_INFINITY, times: 0 }
    this.#troubles.set(trouble, known)
    known.times++
    const nowMs = this.#nowMs()
    if (nowMs - known.saidAtMs < 60_000) return undefined
    known.saidAtMs = nowMs
    return known.times
  }

  /** The troubles are over: the next one is logged at once. */
  clear(): void {
    this.#troubles.clear()
  }
}
