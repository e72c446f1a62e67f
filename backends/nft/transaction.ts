import { countElements, type Elements, put } from './element.js'

/** What one commit changes, all or nothing: first everything in `remove` goes, then everything in `add` comes. */
export interface Transaction {
  readonly remove: Elements
  readonly add: Elements
}

export const emptyTransaction = (): Transaction => ({ remove: new Map(), add: new Map() })

export const isEmpty = ({ remove, add }: Transaction): boolean => remove.size === 0 && add.size === 0

/** How many element operations it takes. */
export const operationCount = ({ remove, add }: Transaction): number => countElements(remove) + countElements(add)

/**
 * Adds to a transaction what leads from one state to the other. The kernel does not change the data of an element in place:
 * it is taken away and put back, which nobody sees in between.
 */
export function addDifference(transaction: Transaction, before: Elements, after: Elements): void {
  for (const [path, old] of before) {
    const now = after.get(path)
    for (const [key, data] of old) if (now?.get(key) !== data) put(transaction.remove, path, key, data)
  }
  for (const [path, now] of after) {
    const old = before.get(path)
    if (!old && !transaction.add.has(path)) {
      // All of it is new, as at the start: a copy of hundreds of thousands of elements would take time and memory for nothing.
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
