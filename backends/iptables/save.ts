import { KpngError } from '@kpng/api'
import { type Table, tables } from './rule.js'

// Reads what iptables-save prints.

/** A table as it is in the kernel. */
export interface SavedTable {
  /** The system's own chains, which have a policy. */
  readonly builtIn: ReadonlySet<string>
  /** The rules of each chain, without `-A <chain>`. */
  readonly chains: ReadonlyMap<string, readonly string[]>
}

export type Saved = Readonly<Record<Table, SavedTable>>

/** iptables-nft says this of a table that it cannot show, because it has rules that only nft can make. */
const incompatible = /^# Table `(nat|filter)' is incompatible/m

export function parseSaved(text: string): Saved {
  const unreadable = incompatible.exec(text)?.[1]
  if (unreadable !== undefined) {
    throw new KpngError(
      'unsupported',
      `The table ${unreadable} has rules that iptables cannot read, made by nft or another program. Move them to a table of their own (see \`nft list table ip ${unreadable}\`), or use to-nft.`,
    )
  }
  const found = { nat: emptyTable(), filter: emptyTable() }
  let table: ReturnType<typeof emptyTable> | undefined
  for (const line of text.split('\n')) {
    if (line.startsWith('-A ')) {
      const end = line.indexOf(' ', 3)
      const chain = end < 0 ? line.slice(3) : line.slice(3, end)
      table?.chains.get(chain)?.push(end < 0 ? '' : line.slice(end + 1))
    } else if (line.startsWith(':')) {
      const [chain = '', policy] = line.slice(1).split(' ')
      table?.chains.set(chain, [])
      if (policy !== '-') table?.builtIn.add(chain)
    } else if (line.startsWith('*')) {
      const name = line.slice(1).trim()
      table = tables.includes(name as Table) ? found[name as Table] : undefined
    }
  }
  return found
}

const emptyTable = () => ({ builtIn: new Set<string>(), chains: new Map<string, string[]>() })

/** The parts of a rule that matter, whatever version of iptables printed it. */
export interface RuleParts {
  /** `! ` comes before a source that is excluded. */
  readonly source: string
  readonly destination: string
  readonly protocol: string
  readonly port: number
  /** Only traffic of this node itself. */
  readonly isFromNode: boolean
  /** Only traffic to addresses of this node. */
  readonly isToNode: boolean
  readonly interfaceName: string
  /** The chain that it jumps to, or what becomes of the packet. Empty: nothing. */
  readonly target: string
  /** Where DNAT leads to. */
  readonly to: string
}

export const commentPattern = /-m comment --comment (?:"(?:\\.|[^"\\])*"|\S+) ?/

export function partsOf(rule: string): RuleParts {
  // A comment may look like anything.
  const bare = ` ${rule.replace(commentPattern, '')} `
  const after = (flag: string): string => {
    const at = bare.indexOf(` ${flag} `)
    if (at < 0) return ''
    const start = at + flag.length + 2
    const value = bare.slice(start, bare.indexOf(' ', start))
    return bare.slice(at - 2, at) === ' !' ? `! ${value}` : value
  }
  return {
    source: after('-s'),
    destination: after('-d'),
    protocol: after('-p'),
    port: Number(after('--dport')),
    isFromNode: bare.includes(' --src-type LOCAL '),
    isToNode: bare.includes(' --dst-type LOCAL '),
    interfaceName: after('-i'),
    target: after('-j') || after('-g'),
    to: after('--to-destination'),
  }
}

/** Who jumps to a chain of a set, from a chain outside of it. */
export function jumpsFromOutside({ chains }: SavedTable, own: ReadonlySet<string>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [chain, rules] of chains) {
    if (own.has(chain)) continue
    for (const rule of rules) {
      const { target } = partsOf(rule)
      if (own.has(target)) found.set(target, [...(found.get(target) ?? []), `${chain} ${rule}`])
    }
  }
  return found
}
