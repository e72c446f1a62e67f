import { type Family, families, KpngError } from '@kpng/api'
import { hasCapability, outputOf, rightsAdvice, runProgram } from '@kpng/linux'
import { tableFamily } from './names.js'
import type { IpvsState } from './state.js'
import { type ServerAddress, serverKey } from './virtual-servers.js'

// Our nftables tables, by the nft program.

/** If nft takes longer, it hangs. Long input gets 10 seconds per megabyte. */
const limitMsFor = (input: string): number => 30_000 + input.length / 100

/** Runs a text as one transaction. */
export async function applyRules(text: string): Promise<void> {
  const why = await refusal(['-f', '-'], text)
  if (why === undefined) return
  const advice = hasCapability('CAP_NET_ADMIN') === false ? ` ${rightsAdvice('CAP_NET_ADMIN')}` : ''
  throw new KpngError('refused', `nft refused a transaction: ${why}. Nothing was changed.${advice}`)
}

/** Rejects if nft or the kernel would refuse a text. Changes nothing. */
export async function checkRules(text: string): Promise<void> {
  const why = await refusal(['-c', '-f', '-'], text)
  if (why === undefined) return
  const advice = /not permitted/.test(why) ? rightsAdvice('CAP_NET_ADMIN') : 'Update nft, or use another backend.'
  throw new KpngError('unsupported', `The kernel, or nft, does not accept kpng's rules: ${why}. ${advice}`)
}

async function refusal(args: readonly string[], input: string): Promise<string | undefined> {
  const { code, errors } = await runProgram('nft', args, { input, limitMs: limitMsFor(input) })
  if (code === 0) return undefined
  const lines = errors.split('\n')
  const line = lines.find((each) => each.includes('Error')) ?? lines[0] ?? ''
  return line.replace(/^.*?Error:\s*/, '').slice(0, 300) || `exit code ${code}`
}

/** A table as it is in the kernel. */
export interface ReadTable {
  /** Chains and rules as text, to be compared with an earlier one. */
  readonly rules: string
  /** The keys of each set and map, and the values of maps. */
  readonly sets: ReadonlyMap<string, ReadonlyMap<string, string>>
}

/** The rules of a table, as `readTable` has them. Does not read the elements of sets, which takes long in large clusters. */
export const readRules = async (family: Family, name: string): Promise<string | undefined> =>
  (await readTable(family, name, ['-t']))?.rules

/** Undefined: there is no such table. */
export async function readTable(
  family: Family,
  name: string,
  flags: readonly string[] = [],
): Promise<ReadTable | undefined> {
  const args = ['-j', ...flags, 'list', 'table', tableFamily[family], name]
  const { code, output, errors } = await runProgram('nft', args, { limitMs: limitMsFor('') })
  if (code !== 0) {
    if (/No such file or directory/.test(errors)) return undefined
    throw new KpngError('unavailable', `nft cannot list the table ${name}: ${errors.slice(0, 300)}.`)
  }
  return tableIn(JSON.parse(output) as unknown)
}

/** The families and names of all tables. */
export async function tableNames(): Promise<{ readonly family: Family; readonly name: string }[]> {
  const output = await outputOf('nft', ['list', 'tables'], { limitMs: limitMsFor('') })
  return [...output.matchAll(/^table (\S+) (\S+)$/gm)].flatMap(([, kind, name = '']) => {
    const family = families.find((each) => tableFamily[each] === kind)
    return family ? [{ family, name }] : []
  })
}

type Json = { readonly [name: string]: unknown }

/** Reads what `nft -j list table` prints. */
export function tableIn(printed: unknown): ReadTable {
  const rules: string[] = []
  const sets = new Map<string, ReadonlyMap<string, string>>()
  for (const item of ((printed as Json).nftables ?? []) as Json[]) {
    const set = (item.set ?? item.map) as Json | undefined
    if (set) sets.set(String(set.name), new Map(((set.elem ?? []) as unknown[]).map(entryOf)))
    // Handles are other numbers each time.
    else if (item.rule || item.chain)
      rules.push(JSON.stringify(item, (key, value) => (key === 'handle' ? undefined : value)))
  }
  return { rules: rules.join('\n'), sets }
}

/** An element of a set, or a pair of a map. */
const entryOf = (element: unknown): [string, string] =>
  Array.isArray(element) ? [keyText(element[0]), valueText(element[1])] : [keyText(element), '']

function keyText(key: unknown): string {
  if (typeof key !== 'object' || key === null) return String(key)
  const { concat, prefix, elem } = key as {
    concat?: unknown[]
    prefix?: { addr: string; len: number }
    elem?: { val: unknown }
  }
  if (concat) return concat.map(keyText).join(' . ')
  if (prefix) return `${prefix.addr}/${prefix.len}`
  return elem ? keyText(elem.val) : JSON.stringify(key)
}

function valueText(value: unknown): string {
  if (typeof value === 'number') return `0x${value.toString(16)}`
  if (typeof value !== 'object' || value === null) return String(value)
  const [verb = '', target] = Object.entries(value)[0] ?? []
  return target ? `${verb} ${String((target as Json).target)}` : verb
}

// What our tables say: which virtual servers are kpng's, and whether somebody changed the tables.

/** The virtual servers of the tables with some names. */
export async function keysInTables(isWanted: (name: string) => boolean): Promise<Set<string>> {
  const keys = new Set<string>()
  for (const { family, name } of await tableNames()) {
    if (!isWanted(name)) continue
    for (const key of recordedKeys(await readTable(family, name), family)) keys.add(key)
  }
  return keys
}

/** The virtual servers that a table was written for. */
export function* recordedKeys(table: ReadTable | undefined, family: Family): Iterable<string> {
  for (const key of table?.sets.get('servers')?.keys() ?? []) {
    const [address = '', protocol = '', port = ''] = key.split(' . ')
    yield serverKey({ family, address, protocol: protocol as ServerAddress['protocol'], port: Number(port), mark: 0 })
  }
  for (const prefix of ['', 'whole-'])
    for (const name of ['marks-inside', 'marks-outside'])
      for (const mark of table?.sets.get(`${prefix}${name}`)?.values() ?? []) yield `${family} mark ${mark}`
}

/** What differs in a table, as a part of a sentence. */
export function tableDrift(
  table: ReadTable | undefined,
  rules: string | undefined,
  state: IpvsState,
  family: Family,
): string | undefined {
  if (!table || table.sets.size === 0) return 'everything is gone'
  if (table.rules !== rules) return 'there are other rules'
  const counts = new Map<string, number>()
  for (const { set, key } of state.elements(family)) {
    counts.set(set, (counts.get(set) ?? 0) + 1)
    if (!table.sets.get(set)?.has(key)) return `the set ${set} lacks ${key}`
  }
  for (const [set, elements] of table.sets) {
    if (elements.size !== (counts.get(set) ?? 0)) return `the set ${set} has other elements`
  }
  return undefined
}
