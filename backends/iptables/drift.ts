import { setImmediate } from 'node:timers/promises'
import type { Family, Log } from '@kpng/api'
import { type Programs, save } from './flavour.js'
import type { ChainNames } from './names.js'
import { missingJumps } from './restore.js'
import { type Chains, type Table, tables } from './rule.js'
import type { RuleState } from './rule-state.js'
import { parseSaved, partsOf, type Saved } from './save.js'

/** Comparing all chains of a large cluster takes long; syncs must not wait for it. */
const chainsAtOnce = 200

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

/**
 * What somebody else changed, as a sentence; undefined if nothing. Rules are compared by what they do and for whom: versions of
 * iptables print the rest differently. A rule that others put into a chain of ours is a change too.
 */
async function driftOf(
  wanted: Readonly<Record<Table, Chains>>,
  names: ChainNames,
  saved: Saved,
): Promise<string | undefined> {
  const [jump] = missingJumps(names, saved)
  if (jump) return `the jump from ${jump.from} to ${jump.to} in the table ${jump.table} is gone`
  for (const table of tables) {
    let compared = 0
    for (const [chain, rules] of wanted[table]) {
      if (++compared % chainsAtOnce === 0) await setImmediate()
      const there = saved[table].chains.get(chain)
      if (!there) return `the chain ${chain} in the table ${table} is gone`
      if (
        there.length === rules.length &&
        there.every((rule, index) => rule === rules[index] || effectOf(rule) === effectOf(rules[index] ?? ''))
      )
        continue
      return `the chain ${chain} in the table ${table} has other rules`
    }
  }
  return undefined
}

function effectOf(rule: string): string {
  const { source, destination, protocol, port, target, to } = partsOf(rule)
  return [source, destination, protocol, port, target, to].join(' ')
}
