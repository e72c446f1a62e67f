import type { SetPath } from '../rules/names.js'

// What is in the sets and maps of our tables, and how to get from one state to another.

/** Key → data, both byte strings (bytes.ts). The data of a set's element is ''; that of a verdict map is the name of a chain. */
export type ElementMap = Map<string, string>

/** The contents of the tables, or a part of them. */
export type Elements = Map<SetPath, ElementMap>

export function put(elements: Elements, path: SetPath, key: string, data = ''): void {
  const map = elements.get(path)
  if (map) map.set(key, data)
  else elements.set(path, new Map([[key, data]]))
}

export function countElements(elements: Elements): number {
  let count = 0
  for (const map of elements.values()) count += map.size
  return count
}

/** What one commit changes, all or nothing: first everything in `remove` goes, then everything in `add` comes. */
export interface Transaction {
  readonly remove: Elements
  readonly add: Elements
}

export const emptyTransaction = (): Transaction => ({ remove: new Map(), add: new Map() })

export const isEmpty = ({ remove, add }: Transaction): boolean => remove.size === 0 && add.size === 0

/** The number of elements that it writes. */
export const operationCount = ({ remove, add }: Transaction): number => countElements(remove) + countElements(add)

/**
 * Adds to a transaction what leads from one state to the other. The kernel does not change the data of an element in place:
 * the element is removed and added again, which no packet sees.
 */
export function addDifference(transaction: Transaction, before: Elements, after: Elements): void {
  for (const [path, old] of before) {
    const now = after.get(path)
    for (const [key, data] of old) if (now?.get(key) !== data) put(transaction.remove, path, key, data)
  }
  for (const [path, now] of after) {
    const old = before.get(path)
    if (!old && !transaction.add.has(path)) {
      // All of it is new, as at the start. Copying hundreds of thousands of elements would cost time and memory for nothing.
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
