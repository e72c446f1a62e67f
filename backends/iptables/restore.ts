import { KpngError } from '@kpng/api'
import { hasCapability, rightsAdvice, runProgram } from '@kpng/linux'
import { type Jump, jumpsTo } from './chains.js'
import { type ChainNames, fixedChains } from './names.js'
import { type Chains, type Table, tables } from './rule.js'
import type { TableUpdate, Update } from './rule-state.js'
import { jumpsFromOutside, partsOf, type Saved } from './save.js'
import { Steps } from './steps.js'

/** What kpng tells iptables-restore about one table. */
interface TableInput extends TableUpdate {
  /** Jumps to be put before all other rules, the last one first. */
  readonly jumps: readonly Jump[]
}

/**
 * The input of `iptables-restore --noflush`. Declaring a chain empties it, so a chain is always written as a whole; chains that
 * are not named stay as they are. nat comes first: a Service that gets its first endpoint is served before it is no longer refused.
 * Each table changes in one step, unless it has more than `maxLines`. Then each step leaves rules that work: a chain comes after the
 * chains that it leads to, so the shared chains are last, and chains are deleted after those that led to them.
 */
export function restoreInput(update: Readonly<Record<Table, TableInput | TableUpdate>>, maxLines: number): string {
  const lines: string[] = []
  for (const table of tables) {
    const { write, remove } = update[table]
    const steps = new Steps(maxLines)
    for (const [chain, rules] of write) steps.write(chain, rules)
    for (const { from, rule } of 'jumps' in update[table] ? update[table].jumps : []) steps.add(`-I ${from} 1 ${rule}`)
    steps.remove(remove)
    for (const line of steps.lines(table)) lines.push(line)
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

/** The input that makes everything as it should be, whatever is there. */
export function fullInput(
  chains: Readonly<Record<Table, Chains>>,
  names: ChainNames,
  saved: Saved,
  maxLines = Number.POSITIVE_INFINITY,
): string {
  const missing = missingJumps(names, saved)
  const inputOf = (table: Table): TableInput => ({
    write: chains[table],
    remove: staleChains(chains[table], names, saved, table),
    jumps: missing.filter((jump) => jump.table === table),
  })
  return restoreInput({ nat: inputOf('nat'), filter: inputOf('filter') }, maxLines)
}

export const changeInput = (update: Update, maxLines = Number.POSITIVE_INFINITY): string =>
  restoreInput(update, maxLines)

/** Jumps to our chains that are not there. One of kube-proxy to the same chain is as good. */
export const missingJumps = (names: ChainNames, saved: Saved): Jump[] =>
  jumpsTo(names).filter(({ table, from, to }) => {
    const rules = saved[table].chains.get(from) ?? []
    return !rules.some((rule) => partsOf(rule).target === to)
  })

/** Chains of ours that nobody needs. A chain that rules of others use cannot be deleted, and stays. */
function staleChains(wanted: Chains, names: ChainNames, saved: Saved, table: Table): string[] {
  const fixed = new Set(fixedChains(names))
  const own = new Set(
    [...saved[table].chains.keys()].filter(
      (chain) => names.isPortChain(chain) || fixed.has(chain) || wanted.has(chain),
    ),
  )
  const used = jumpsFromOutside(saved[table], own)
  return [...own].filter((chain) => !wanted.has(chain) && !used.has(chain))
}

export interface RestoreOptions {
  /** How long to wait for the lock of legacy iptables. The nft flavour has none and ignores it. */
  readonly lockWaitSeconds: number
}

/** Large clusters have hundreds of thousands of rules, and iptables-nft takes more than a minute for 5,000 Services. */
const limitMs = 300_000

/** @param program `iptables`, `ip6tables-nft` … */
export async function restore(program: string, input: string, { lockWaitSeconds }: RestoreOptions): Promise<void> {
  const args = ['--noflush', `--wait=${lockWaitSeconds}`]
  const { code, errors } = await runProgram(`${program}-restore`, args, { input, limitMs, env: inEnglish() })
  if (code !== 0)
    throw restoreFailure(`${program}-restore`, input, errors || `it ended with code ${code}`, lockWaitSeconds)
}

/** What a program says is read here. */
export const inEnglish = (): NodeJS.ProcessEnv => ({ ...process.env, LC_ALL: 'C' })

/** Says which line failed, and what stands there. */
export function restoreFailure(program: string, input: string, said: string, lockWaitSeconds: number): KpngError {
  if (/xtables lock/.test(said)) {
    return new KpngError(
      'unavailable',
      `${program} waited ${lockWaitSeconds} s for the lock of iptables, which another program holds. See who: fuser /run/xtables.lock. kpng tries again.`,
    )
  }
  const number = Number(/\bline:? (\d+)/.exec(said)?.[1])
  const line = Number.isInteger(number) ? input.split('\n')[number - 1] : undefined
  const at = line === undefined ? '' : ` at line ${number} (${line.slice(0, 300)})`
  const advice = hasCapability('CAP_NET_ADMIN') ? '' : ` ${rightsAdvice('CAP_NET_ADMIN')}`
  const why = said.replace(/\s+/g, ' ').slice(0, 500)
  return new KpngError(
    'refused',
    `${program} failed${at}: ${why}. What comes before the last COMMIT above that line is written, and nothing else; kpng tries again with everything.${advice}`,
  )
}
