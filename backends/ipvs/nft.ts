import { type Family, families, KpngError } from '@kpng/api'
import { hasCapability, outputOf, rightsAdvice, runProgram } from '@kpng/linux'
import { tableFamily } from './names.js'

// Our nftables tables, by the nft program.

/** If nft takes longer, it hangs. Long input gets 10 seconds per megabyte. */
const limitMsFor = (input: string): number => 30_000 + input.length / 100

/** Runs a text as one transaction. */
export async function applyRules(text: string): Promise<void> {
  const { code, errors } = await runProgram('nft', ['-f', '-'], { input: text, limitMs: limitMsFor(text) })
  if (code === 0) return
  const reason = reasonIn(errors) || `exit code ${code}`
  const advice = hasCapability('CAP_NET_ADMIN') === false ? ` ${rightsAdvice('CAP_NET_ADMIN')}` : ''
  throw new KpngError('refused', `nft refused a transaction: ${reason}. Nothing was changed.${advice}`)
}

/** Rejects if nft or the kernel would refuse a text. Changes nothing. */
export async function checkRules(text: string): Promise<void> {
  const { code, errors } = await runProgram('nft', ['-c', '-f', '-'], { input: text, limitMs: limitMsFor(text) })
  if (code === 0) return
  const advice = /not permitted/.test(errors) ? rightsAdvice('CAP_NET_ADMIN') : 'Update nft, or use another backend.'
  throw new KpngError(
    'unsupported',
    `The kernel, or nft, does not accept kpng's rules: ${reasonIn(errors) || `exit code ${code}`}. ${advice}`,
  )
}

const reasonIn = (errors: string): string => {
  const lines = errors.split('\n')
  return (lines.find((line) => line.includes('Error')) ?? lines[0] ?? '').replace(/^.*?Error:\s*/, '').slice(0, 300)
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
