import { createHash } from 'node:crypto'
import type { TableFamily } from './family.js'
import { type SetShape, setAttributes } from './set.js'
import type { Statement } from './statement.js'

// What the tables of one owner look like: one table per family, its sets, its chains. They are constant; what changes are elements.

/** Where packets enter a chain. */
export interface Hook {
  readonly type: 'nat' | 'filter'
  readonly name: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting'
  readonly priority: number
}

/** One chain: its name, its hook where it has one, its rules. */
export interface Chain {
  readonly name: string
  readonly hook?: Hook
  readonly rules: readonly Statement[]
}

export interface Ruleset {
  readonly tableName: string
  /** The sets and maps by name. */
  readonly sets: Readonly<Record<TableFamily, ReadonlyMap<string, SetShape>>>
  /** Each chain after those that it goes to. */
  readonly chains: (family: TableFamily) => readonly Chain[]
  /**
   * The rules of a chain that exists only while elements refer to it; undefined for other names. Such chains are made in the transaction
   * that adds the element. Without this, there are none.
   */
  readonly extraChain?: (family: TableFamily, name: string) => readonly Statement[] | undefined
}

const gotoText = 'goto '

/** The verdict of a map as text. */
export const gotoVerdict = (chain: string): string => `${gotoText}${chain}`

export const chainOf = (verdict: string): string | undefined =>
  verdict.startsWith(gotoText) ? verdict.slice(gotoText.length) : undefined

/**
 * A set with this name marks a table with exactly these rules. A table of any other version, or with other options, is replaced as
 * a whole.
 */
export function rulesetVersion(
  family: TableFamily,
  { sets, chains: chainsIn }: Ruleset,
  chains: readonly Chain[] = chainsIn(family),
): string {
  const shapes = [...sets[family]].map(([name, shape]) => [name, setAttributes(family, shape)])
  // In most chains equal rules follow one another; each of them is serialized once.
  const ruleOnce = (rule: Statement, index: number, rules: readonly Statement[]) =>
    rule === rules[index - 1] ? 'again' : rule
  const all = JSON.stringify([shapes, chains.map((chain) => ({ ...chain, rules: chain.rules.map(ruleOnce) }))])
  return `skeleton-${createHash('sha256').update(all).digest('hex').slice(0, 12)}`
}

/** A set without elements whose name holds the digest of the table as it was made. If the digest differs, somebody changed it. */
export const sealSet = (digest: string): string => `rules-${digest}`

export const isSealSet = (name: string): boolean => /^rules-[0-9a-f]+$/.test(name)
