import type { TableFamily } from './family.js'

// What is in the sets and maps of our tables, and how to get from one state to another.

/** A set in one of the tables: `ip endpoints`. */
export type SetPath = `${TableFamily} ${string}`

/** A chain in one of the tables: `ip remember-60`. */
export type ChainPath = `${TableFamily} ${string}`

/** Returns the same string object each time: it is looked up once per element, and a new string must be hashed first. */
export function setPath(family: TableFamily, name: string): SetPath {
  const known = setPaths[family].get(name)
  if (known !== undefined) return known
  const path: SetPath = `${family} ${name}`
  setPaths[family].set(name, path)
  return path
}

const setPaths: Readonly<Record<TableFamily, Map<string, SetPath>>> = { ip: new Map(), ip6: new Map() }

export function splitSetPath(path: SetPath): { family: TableFamily; name: string } {
  const space = path.indexOf(' ')
  return { family: path.slice(0, space) as TableFamily, name: path.slice(space + 1) }
}

/** Key → data, both byte strings. The data of a set's element is ''; that of a verdict map is the verdict as text. */
export type ElementMap = Map<string, string>

/** The contents of the tables, or a part of them. */
export type Elements = Map<SetPath, ElementMap>

export function put(elements: Elements, path: SetPath, key: string, data = ''): void {
  mapAt(elements, path).set(key, data)
}

/** The map at a path, made if it is missing. */
export function mapAt<Value>(maps: Map<SetPath, Map<string, Value>>, path: SetPath): Map<string, Value> {
  let map = maps.get(path)
  if (!map) {
    map = new Map()
    maps.set(path, map)
  }
  return map
}

export function countElements(elements: Elements): number {
  let count = 0
  for (const map of elements.values()) count += map.size
  return count
}

/** What one commit changes, all or nothing: first `remove` is removed, then `add` is added. */
export interface Transaction {
  readonly remove: Elements
  readonly add: Elements
}

export const emptyTransaction = (): Transaction => ({ remove: new Map(), add: new Map() })

export const isEmpty = ({ remove, add }: Transaction): boolean => remove.size === 0 && add.size === 0

/** The number of elements that it writes. */
export const operationCount = ({ remove, add }: Transaction): number => countElements(remove) + countElements(add)

/**
 * Adds to a transaction the difference between two states. The kernel cannot change the data of an element in place: the element is
 * removed and added again in one transaction, so no packet sees it missing.
 */
export function addDifference(transaction: Transaction, before: Elements, after: Elements): void {
  for (const [path, old] of before) {
    const now = after.get(path)
    for (const [key, data] of old) if (now?.get(key) !== data) put(transaction.remove, path, key, data)
  }
  for (const [path, now] of after) {
    const old = before.get(path)
    if (!old && !transaction.add.has(path)) {
      // Everything is new, as at the start. Copying hundreds of thousands of elements would waste time and memory.
      transaction.add.set(path, now)
      continue
    }
    for (const [key, data] of now) if (old?.get(key) !== data) put(transaction.add, path, key, data)
  }
}

export function difference(before: Elements, after: Elements): Transaction {
  const transaction = emptyTransaction()
  addDifference(transaction, before, after)
  return transaction
}
