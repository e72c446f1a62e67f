import type { Family } from './address.js'
import { protocols } from './element.js'
import { isSealSet, rememberedSeconds } from './names.js'
import { digestOf } from './outline-digest.js'
import { rememberRule } from './skeleton.js'
import type { TableOutline } from './writer.js'

/** Reads what `nft -s -t list table` prints: a table without its elements and without what is counted. */
export function outlineIn(family: Family, text: string): TableOutline {
  const sets = new Set<string>()
  const rememberChains = new Map<string, boolean>()
  const parts: string[] = []
  for (const { kind, name, lines } of blocksIn(text)) {
    const seconds = kind === 'chain' ? rememberedSeconds(name) : undefined
    if (kind === 'set' || kind === 'map') sets.add(name)
    if (seconds !== undefined) rememberChains.set(name, areRememberRules(family, lines, seconds))
    else if (!isSealSet(name)) parts.push([kind, name, ...lines].join('\n'))
  }
  return { sets, rememberChains, digest: digestOf(parts) }
}

interface Block {
  readonly kind: string
  readonly name: string
  readonly lines: readonly string[]
}

/** The sets, maps and chains, and what stands beside them in the table: its flags. */
function* blocksIn(text: string): Generator<Block> {
  const beside: string[] = []
  let block: { kind: string; name: string; lines: string[] } | undefined
  for (const line of text.split('\n')) {
    const head = /^\t(\S+) (\S+) \{/.exec(line)
    if (head) block = { kind: head[1] ?? '', name: head[2] ?? '', lines: [] }
    else if (line === '\t}' && block) {
      yield block
      block = undefined
      // Newer versions say how many elements there are, even when they are not listed.
    } else if (line.startsWith('\t')) (block?.lines ?? beside).push(line.replace(/ # count \d+$/, '').trim())
  }
  yield { kind: 'table', name: '', lines: beside }
}

/** nft leaves out what the rest of a rule implies, and writes times in days, hours and minutes. */
function areRememberRules(family: Family, lines: readonly string[], seconds: number): boolean {
  const listed = lines.map((line) =>
    withoutProtocol(line.replace(/ timeout (\S+) /, (_, time) => ` timeout ${secondsIn(time)}s `)),
  )
  return (
    listed.join('\n') ===
    protocols.map((protocol) => withoutProtocol(rememberRule(family, protocol, seconds))).join('\n')
  )
}

const withoutProtocol = (rule: string): string => rule.replace(/^meta l4proto \S+ /, '')

const secondsOf: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1 }

/** `1d2h3m4s` → 93784 */
export function secondsIn(time: string): number {
  let seconds = 0
  for (const [, count, unit = ''] of time.matchAll(/(\d+)([dhms])/g)) seconds += Number(count) * (secondsOf[unit] ?? 0)
  return seconds
}
