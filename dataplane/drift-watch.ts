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

/** Looks from time to time whether somebody else changed what is ours, where the kernel does not tell. */
export class DriftWatch {
  readonly #options: DriftWatchOptions
  #isClosed = false
  #timer: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined

  constructor(options: DriftWatchOptions) {
    this.#options = options
    if (options.intervalMs > 0) this.#wait(options.intervalMs)
  }

  /** Resolves when a look that is under way is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#look
  }

  #wait(ms: number): void {
    const look = async () => {
      const startedMs = performance.now()
      await this.#lookOnce()
      const tookMs = performance.now() - startedMs
      if (!this.#isClosed) this.#wait(Math.max(this.#options.intervalMs, tookMs / largestShare))
    }
    this.#timer = setTimeout(() => {
      this.#look = look()
    }, ms).unref()
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
