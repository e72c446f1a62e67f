import { type Log, messageOf } from '@kpng/api'

/** Looking may take at most this share of the time. */
const largestShare = 0.02

export interface DriftWatchOptions {
  /** How long to wait between two looks. 0: it never looks. */
  readonly intervalMs: number
  /** What others changed, as a sentence; undefined if nothing. */
  readonly look: () => Promise<string | undefined>
  /** The number of the last sync. Undefined while there is nothing to compare with: during a sync, and after one that failed. */
  readonly lastSync: () => number | undefined
  /** Is told what others changed. */
  readonly onDrift: (reason: string) => void
  /** Gets a warning if a look fails. */
  readonly log: Log
}

/** Looks from time to time, and when the kernel notifies, whether somebody else changed what is ours. */
export class DriftWatch {
  readonly #options: DriftWatchOptions
  #isClosed = false
  #timer: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined
  /** By the monotonic clock: so that looks take no more than their share of the time. */
  #notBeforeMs = 0
  #isNoticed = false

  constructor(options: DriftWatchOptions) {
    this.#options = options
    if (options.intervalMs > 0) this.#wait(options.intervalMs)
  }

  /** The kernel says that something changed: the next look comes as soon as it may. */
  lookNow(): void {
    if (this.#options.intervalMs === 0 || this.#isClosed || this.#isNoticed) return
    this.#isNoticed = true
    if (!this.#look) this.#wait(0)
  }

  /** Resolves when a look that is under way is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#look
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => {
        this.#look = this.#lookAndWait()
      },
      Math.max(ms, this.#notBeforeMs - performance.now()),
    ).unref()
  }

  async #lookAndWait(): Promise<void> {
    this.#isNoticed = false
    const startedMs = performance.now()
    await this.#lookOnce()
    const endedMs = performance.now()
    this.#notBeforeMs = endedMs + (endedMs - startedMs) / largestShare
    this.#look = undefined
    if (!this.#isClosed) this.#wait(this.#isNoticed ? 0 : this.#options.intervalMs)
  }

  async #lookOnce(): Promise<void> {
    const { lastSync, onDrift, look, log } = this.#options
    const sync = lastSync()
    if (sync === undefined) return
    try {
      const reason = await look()
      // What was read during a sync may be of before or after it.
      if (lastSync() === sync && !this.#isClosed && reason !== undefined) onDrift(reason)
    } catch (error) {
      if (lastSync() === sync) log.warn('Changes by others could not be looked for', { error: messageOf(error) })
    }
  }
}
