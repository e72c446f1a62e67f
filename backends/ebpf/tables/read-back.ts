import type { Sizes } from '../layout.js'
import type { HashTable } from './hash-table.js'
import type { TableMemory } from './memory.js'
import { Runs } from './runs.js'

/** What is known of the set of one frontend. */
export interface KnownSet {
  readonly number: number
  readonly base: number
  readonly count: number
  readonly affinitySeconds: number
  /** The numbers of its endpoints, by address and port. */
  readonly endpoints: ReadonlyMap<string, number>
  /** Somebody else wrote it: nothing of what it holds is used again. */
  readonly isDamaged: boolean
}

/** Which numbers of each map are free. */
export class Numbers {
  readonly sets: Runs
  readonly slots: Runs
  readonly endpoints: Runs

  constructor({ frontends, slots, endpoints }: Sizes) {
    this.sets = new Runs('sets', frontends)
    this.slots = new Runs('slots', slots)
    this.endpoints = new Runs('endpoints', endpoints)
  }
}

/** Reads what the maps hold, by frontend. What cannot be reached from a frontend is free; an endpoint there serves nobody any more. */
export function readBack(
  frontends: HashTable,
  memory: TableMemory,
  sizes: Sizes,
): { known: Map<string, KnownSet>; numbers: Numbers } {
  const known = new Map<string, KnownSet>()
  const numbers = new Numbers(sizes)
  const used = new Set<number>()
  for (const [key, number] of [...frontends.entries()]) {
    // Each frontend has a set of its own.
    if (number >= sizes.frontends || !numbers.sets.reserve(number, 1)) {
      frontends.delete(key)
      continue
    }
    const read = memory.readSet(number)
    let isDamaged = read.isDamaged || (read.count > 0 && !numbers.slots.reserve(read.base, read.count))
    const endpoints = new Map<string, number>()
    for (const [text, endpoint] of read.endpoints) {
      if (numbers.endpoints.reserve(endpoint, 1)) endpoints.set(text, endpoint)
      else isDamaged = true
      used.add(endpoint)
    }
    const { base, affinitySeconds } = read
    known.set(key, { number, base, count: isDamaged ? 0 : read.count, affinitySeconds, endpoints, isDamaged })
  }
  memory.retireAllBut(used)
  return { known, numbers }
}
