import { readFile } from 'node:fs/promises'
import { families, type Log } from '@kpng/api'
import { isMissingProgram, runProgram } from '@kpng/linux'
import { familyOfTable, listTables } from '@kpng/linux/nftables'
import { describe, programsOf, save } from './flavour.js'
import { type ChainNames, fixedChains, namesOfOwner } from './names.js'
import { restore } from './restore.js'
import { tables } from './rule.js'
import { jumpsFromOutside, parseSaved, type Saved } from './save.js'
import { linesAtOnce, Steps } from './steps.js'

/** The kpngs that left chains, by their ownership chains. Without one, KUBE-… chains belong to kube-proxy. */
export function ownersIn(saved: Saved): ChainNames[] {
  const owners = new Set(tables.flatMap((table) => [...saved[table].chains.keys()]))
  return [...owners].flatMap((chain) => namesOfOwner(chain) ?? [])
}

/** The input of iptables-restore that removes the chains of one kpng and the jumps to them, and nothing else. */
export function removalInput(names: ChainNames, saved: Saved, maxLines: number): string {
  const fixed = new Set(fixedChains(names))
  const lines: string[] = []
  for (const table of tables) {
    const { chains, builtIn } = saved[table]
    const own = new Set([...chains.keys()].filter((chain) => names.isPortChain(chain) || fixed.has(chain)))
    if (own.size === 0) continue
    const jumps: string[] = []
    const kept = new Set<string>()
    for (const [target, rules] of jumpsFromOutside(saved[table], own)) {
      for (const rule of rules) {
        // Rules of others may use our chains, such as KUBE-MARK-MASQ. Those stay, with what they need.
        if (builtIn.has(rule.slice(0, rule.indexOf(' '))) && /"kubernetes [^"]+"/.test(rule)) jumps.push(rule)
        else kept.add(target)
      }
    }
    for (const chain of kept) {
      for (const [target, from] of jumpsFromOutside(
        { builtIn, chains: new Map([[' ', chains.get(chain) ?? []]]) },
        own,
      ))
        if (from.length > 0) kept.add(target)
    }
    const gone = [...own].filter((chain) => !kept.has(chain))
    const steps = new Steps(maxLines)
    for (const chain of gone) if (fixed.has(chain)) steps.write(chain, [])
    for (const rule of jumps) steps.add(`-D ${rule}`)
    steps.remove(gone)
    for (const line of steps.lines(table)) lines.push(line)
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

export interface RemovalOptions {
  /** Whose chains; undefined: those of every kpng. */
  readonly only: ChainNames | undefined
  /** Programs that are left alone. */
  readonly except?: readonly string[]
  readonly lockWaitSeconds: number
  readonly log: Log
}

/** Removes chains of kpng in every flavour and family that is there. Rejects if no iptables is installed at all. */
export async function removeChains({ only, except = [], lockWaitSeconds, log }: RemovalOptions): Promise<void> {
  let missing: unknown
  let looked = 0
  for (const family of families) {
    const found = new Map<string, string>()
    for (const flavour of ['nft', 'legacy', undefined] as const) {
      // `iptables` itself is one of the two, and is used only if neither is installed under its own name.
      if (flavour === undefined && found.size > 0) break
      const program = programsOf(flavour)[family]
      try {
        found.set(program, except.includes(program) ? '' : await save(program))
        looked++
      } catch (error) {
        if (!isMissingProgram(error)) throw error
        missing = error
      }
    }
    for (const [program, text] of found) {
      const saved = parseSaved(text)
      for (const names of ownersIn(saved)) {
        if (only && names.owner !== only.owner) continue
        const { flavour } = await describe(program)
        await restore(program, removalInput(names, saved, linesAtOnce[flavour]), { lockWaitSeconds })
        log.detail(1, 'Removed the chains of kpng', { program, owner: names.owner })
      }
    }
  }
  if (looked === 0 && missing) throw missing
}

/** The programs that show chains of a kpng. A flavour without tables is not asked: the question would make some. */
export async function programsWithChains({ owner }: Pick<ChainNames, 'owner'>): Promise<string[]> {
  const found: string[] = []
  for (const family of families) {
    const six = family === 'IPv6' ? '6' : ''
    const legacy = await readFile(`/proc/net/ip${six}_tables_names`, 'utf8').catch(() => '')
    const nft = await listTables((name) => name === 'nat')
    for (const [flavour, isThere] of [
      ['nft', nft.some((table) => familyOfTable[table.family] === family)],
      ['legacy', /^nat$/m.test(legacy)],
    ] as const) {
      const program = programsOf(flavour)[family]
      if (isThere && (await hasChain(program, owner))) found.push(program)
    }
  }
  return found
}

async function hasChain(program: string, chain: string): Promise<boolean> {
  try {
    return (await runProgram(program, ['-w', '5', '-t', 'nat', '-S', chain], { limitMs: 60_000 })).code === 0
  } catch (error) {
    if (isMissingProgram(error)) return false
    throw error
  }
}
