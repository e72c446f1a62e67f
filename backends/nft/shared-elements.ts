import { type Elements, put } from './element.js'
import type { SetPath } from './names.js'
import type { Transaction } from './transaction.js'

/** How many services ask for an element that several may ask for: it comes with the first of them and goes with the last. */
export class SharedElements {
  readonly #counts = new Map<SetPath, Map<string, number>>()
  /** Whether an element was there before the first change since the last `settle`. */
  readonly #touched = new Map<SetPath, Map<string, boolean>>()

  /** Counts the shared elements of a service, up or down. */
  count(elements: Elements, step: 1 | -1): void {
    for (const [path, map] of elements) {
      const counts = entry(this.#counts, path)
      const touched = entry(this.#touched, path)
      for (const key of map.keys()) {
        const now = counts.get(key) ?? 0
        if (!touched.has(key)) touched.set(key, now > 0)
        if (now + step > 0) counts.set(key, now + step)
        else counts.delete(key)
      }
    }
  }

  /** Adds to a transaction what came and what went since the last call. */
  settle(transaction: Transaction): void {
    for (const [path, keys] of this.#touched) {
      for (const [key, was] of keys) {
        const is = this.#counts.get(path)?.has(key) ?? false
        if (was !== is) put(is ? transaction.add : transaction.remove, path, key)
      }
    }
    this.#touched.clear()
  }

  /** Everything that was counted so far, which is taken to be in place already. */
  *all(): Generator<[SetPath, string]> {
    this.#touched.clear()
    for (const [path, counts] of this.#counts) for (const key of counts.keys()) yield [path, key]
  }
}

function entry<T>(maps: Map<SetPath, Map<string, T>>, path: SetPath): Map<string, T> {
  let map = maps.get(path)
  if (!map) {
    map = new Map()
    maps.set(path, map)
  }
  return map
}
