import { setImmediate } from 'node:timers/promises'
import type { Family, Log } from '@kpng/api'
import { type Programs, save } from './flavour.js'
import type { ChainNames } from './names.js'
import { missingJumps } from './restore.js'
import { type Chains, type Table, tables } from './rule.js'
import type { RuleState } from './rule-state.js'
import { commentPattern, parseSaved, partsOf, type Saved } from './save.js'

/** Comparing all chains of a large cluster takes long; syncs must not wait for it. */
const chainsAtOnce = 200

export interface ChainDriftOptions {
  readonly programs: Programs
  /** By family that is served. */
  readonly states: ReadonlyMap<Family, RuleState>
  readonly names: ChainNames
  readonly log: Log
}

/** What iptables-save printed for the rules of a chain right after they were written. */
interface Seal {
  readonly written: readonly string[]
  readonly printed: readonly string[]
}

/**
 * Whether somebody else changed our chains. Rules are written as iptables 1.8 prints them, so what is printed is compared with what was
 * written. Where another version prints rules in another way, what it prints right after a write is the seal with which later looks compare.
 */
export class ChainDrift {
  readonly #options: ChainDriftOptions
  /** By family, table and chain. */
  readonly #seals = new Map<string, Seal>()
  /** Jumps that were not to be seen right after they were written. */
  readonly #unseen = new Set<string>()
  #hasFound = false

  constructor(options: ChainDriftOptions) {
    this.#options = options
  }

  /** What differs, as a sentence; undefined if nothing. */
  async look(): Promise<string | undefined> {
    for (const family of this.#options.states.keys()) {
      for await (const { sentence } of this.#differences(family)) {
        this.#hasFound = true
        return sentence
      }
    }
    return undefined
  }

  /** To be called when everything was written. If a chain still looks changed, it is not somebody else who changes it. */
  async afterFullSync(): Promise<void> {
    if (!this.#hasFound) return
    this.#hasFound = false
    const { programs, states, log } = this.#options
    for (const family of states.keys()) {
      const found: string[] = []
      for await (const { sentence, accept } of this.#differences(family)) {
        found.push(sentence)
        accept()
      }
      if (found.length === 0) continue
      log.warn('Chains look changed right after they were written; only further changes there are noticed', {
        ...{ program: programs[family], reason: found[0], chains: found.length },
      })
    }
  }

  /** What somebody else changed. A rule that others put into a chain of ours is a change too. */
  async *#differences(family: Family): AsyncGenerator<{ sentence: string; accept: () => void }> {
    const { programs, states, names } = this.#options
    const wanted = states.get(family)?.chains
    if (!wanted) return
    const saved = parseSaved(await save(programs[family]))
    for (const { from, to, table } of missingJumps(names, saved)) {
      const sentence = `the jump from ${from} to ${to} in the table ${table} is gone`
      if (!this.#unseen.has(`${family} ${sentence}`))
        yield { sentence, accept: () => void this.#unseen.add(`${family} ${sentence}`) }
    }
    for (const table of tables) yield* this.#changedChains(family, table, wanted[table], saved)
  }

  async *#changedChains(family: Family, table: Table, wanted: Chains, saved: Saved) {
    let compared = 0
    for (const [chain, written] of wanted) {
      if (++compared % chainsAtOnce === 0) await setImmediate()
      const printed = saved[table].chains.get(chain)
      const path = `${family} ${table} ${chain}`
      if (printed && this.#isAsWritten(path, written, printed)) continue
      const what = printed ? 'has other rules' : 'is gone'
      yield {
        sentence: `the chain ${chain} in the table ${table} ${what}`,
        accept: () => void (printed && this.#seals.set(path, { written, printed })),
      }
    }
  }

  #isAsWritten(path: string, written: readonly string[], printed: readonly string[]): boolean {
    if (isSame(written, printed, normal)) return true
    const seal = this.#seals.get(path)
    if (!seal) return false
    if (isSame(seal.written, written, exact)) return isSame(seal.printed, printed, exact)
    // A chain that this iptables prints in another way was written again. Before it is sealed anew, its rules must do the same for the same.
    if (!isSame(written, printed, effectOf)) return false
    this.#seals.set(path, { written, printed })
    return true
  }
}

const isSame = (a: readonly string[], b: readonly string[], textOf: (rule: string) => string): boolean =>
  a.length === b.length && a.every((rule, index) => rule === b[index] || textOf(rule) === textOf(b[index] ?? ''))

const exact = (rule: string): string => rule

/** Without what iptables-save adds or leaves out: defaults of matches, spaces, and the quotes of comments. */
const normal = (rule: string): string =>
  rule
    .replace(commentPattern, '')
    .replace(/ (?:--mask (?:255\.255\.255\.255|(?:ffff:){7}ffff) )?--rsource\b/, '')
    .replace(/ --reject-with icmp6?-port-unreachable\b/, '')
    .replace(/ {2,}/g, ' ')

/** What a rule does, and for whom, as far as all versions print it alike. */
function effectOf(rule: string): string {
  const { source, destination, protocol, port, target, to } = partsOf(rule)
  return [source, destination, protocol, port, target, to].join(' ')
}
