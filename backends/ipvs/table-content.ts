import type { Family } from '@kpng/api'
import { type ReadTable, readTable, tableNames } from './nft.js'
import type { IpvsState } from './state.js'
import { type ServerAddress, serverKey } from './virtual-servers.js'

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
    // nft may print ranges in another way.
    if (!set.endsWith('allowed') && !table.sets.get(set)?.has(key)) return `the set ${set} lacks ${key}`
  }
  for (const [set, elements] of table.sets) {
    if (elements.size !== (counts.get(set) ?? 0)) return `the set ${set} has other elements`
  }
  return undefined
}
