import type { Family, Log } from '@kpng/api'
import { driftOf } from './drift.js'
import { type Programs, save } from './flavour.js'
import type { ChainNames } from './names.js'
import type { RuleState } from './rule-state.js'
import { parseSaved } from './save.js'

export interface ChainDriftOptions {
  readonly programs: Programs
  /** By family that is served. */
  readonly states: ReadonlyMap<Family, RuleState>
  readonly names: ChainNames
  readonly log: Log
}

/** Whether somebody else changed our chains. */
export class ChainDrift {
  readonly #options: ChainDriftOptions
  /** Differences that were there right after everything was written: this iptables prints those rules in another way. */
  readonly #accepted = new Set<string>()
  #hasFound = false

  constructor(options: ChainDriftOptions) {
    this.#options = options
  }

  /** What differs, as a sentence; undefined if nothing. */
  async look(): Promise<string | undefined> {
    for (const family of this.#options.states.keys()) {
      const reason = await this.#differs(family)
      if (reason === undefined || this.#accepted.has(`${family} ${reason}`)) continue
      this.#hasFound = true
      return reason
    }
    return undefined
  }

  /** To be called when everything was written. If a chain still looks changed, it is not somebody else who changes it. */
  async afterFullSync(): Promise<void> {
    if (!this.#hasFound) return
    this.#hasFound = false
    const { programs, states, log } = this.#options
    for (const family of states.keys()) {
      const reason = await this.#differs(family)
      if (reason === undefined) continue
      this.#accepted.add(`${family} ${reason}`)
      log.warn('Chains look changed right after they were written; changes there are not noticed', {
        ...{ program: programs[family], reason },
      })
    }
  }

  async #differs(family: Family): Promise<string | undefined> {
    const { programs, states, names } = this.#options
    const state = states.get(family)
    return state && (await driftOf(state.chains, names, parseSaved(await save(programs[family]))))
  }
}
