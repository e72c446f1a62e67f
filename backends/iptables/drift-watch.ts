import { type Family, type Log, messageOf } from '@kpng/api'
import { driftOf } from './drift.js'
import { type Programs, save } from './flavour.js'
import type { ChainNames } from './names.js'
import type { RuleState } from './rule-state.js'
import { parseSaved } from './save.js'

/** Reading the rules may take at most this share of the time. */
const largestShare = 0.02

export interface DriftWatchOptions {
  readonly programs: Programs
  /** By family that is served. */
  readonly states: ReadonlyMap<Family, RuleState>
  readonly names: ChainNames
  readonly intervalMs: number
  /** The number of the last sync. Undefined while there is nothing to compare with: during a sync, and after one that failed. */
  readonly lastSync: () => number | undefined
  readonly onDrift: (reason: string) => void
  readonly log: Log
}

/** Looks from time to time whether somebody else changed our chains. */
export class DriftWatch {
  readonly #options: DriftWatchOptions
  /** Differences that were there right after everything was written: this iptables prints those rules in another way. */
  readonly #accepted = new Set<string>()
  #isRepairing = false
  #isClosed = false
  #timer: NodeJS.Timeout | undefined
  #look: Promise<void> | undefined

  constructor(options: DriftWatchOptions) {
    this.#options = options
    if (options.intervalMs > 0) this.#wait(options.intervalMs)
  }

  /** To be called when everything was written. If a chain still looks changed, it is not somebody else who changes it. */
  async afterFullSync(): Promise<void> {
    if (!this.#isRepairing) return
    this.#isRepairing = false
    const { programs, states, log } = this.#options
    for (const [family, state] of states) {
      const reason = await this.#differs(family, state)
      if (reason === undefined) continue
      this.#accepted.add(`${family} ${reason}`)
      log.warn('Chains look changed right after they were written; changes there are not noticed', {
        ...{ program: programs[family], reason },
      })
    }
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
    const { states, lastSync, onDrift, log } = this.#options
    const sync = lastSync()
    if (sync === undefined) return
    try {
      for (const [family, state] of states) {
        const reason = await this.#differs(family, state)
        // What was read during a sync may be of before or after it.
        if (lastSync() !== sync || this.#isClosed) return
        if (reason === undefined || this.#accepted.has(`${family} ${reason}`)) continue
        this.#isRepairing = true
        onDrift(reason)
        return
      }
    } catch (error) {
      log.warn('Changes to the chains by others could not be looked for', { error: messageOf(error) })
    }
  }

  async #differs(family: Family, { chains }: RuleState): Promise<string | undefined> {
    const { programs, names } = this.#options
    return await driftOf(chains, names, parseSaved(await save(programs[family])))
  }
}
