import { setImmediate } from 'node:timers/promises'
import type { ChainNames } from './names.js'
import { missingJumps } from './restore.js'
import { type Chains, type Table, tables } from './rule.js'
import { partsOf, type Saved } from './save.js'

/**
 * What somebody else changed, as a sentence; undefined if nothing. Rules are compared by what they do and for whom: versions of
 * iptables print the rest differently. A rule that others put into a chain of ours is a change too.
 */
export async function driftOf(
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
        there.every((rule, index) => effectOf(rule) === effectOf(rules[index] ?? ''))
      )
        continue
      return `the chain ${chain} in the table ${table} has other rules`
    }
  }
  return undefined
}

/** Comparing all chains of a large cluster takes long; syncs must not wait for it. */
const chainsAtOnce = 200

function effectOf(rule: string): string {
  const { source, destination, protocol, port, target, to } = partsOf(rule)
  return [source, destination, protocol, port, target, to].join(' ')
}
