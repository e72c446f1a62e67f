import type { Timeline, Trigger } from '@kpng/client'
import type { DeleteItem, SetItem } from './items.js'

export type { Timeline, Trigger } from '@kpng/client'

/**
 * Items that are always told together. Where many watchers are told the same batch, whoever encodes it may keep the result in
 * `frames`: a state of 50,000 endpoints is then a few thousand buffers for each of them.
 */
export interface Batch<Item extends SetItem = SetItem> {
  readonly items: Iterable<Item>
  readonly shared: boolean
  frames?: Buffer
}

/** A batch of its own, for one watcher. */
export const batchOf = <Item extends SetItem>(items: Iterable<Item>): Batch<Item> => ({ items, shared: false })

export function* itemsOf<Item extends SetItem>(batches: Iterable<Batch<Item>>): Generator<Item> {
  for (const batch of batches) yield* batch.items
}

/**
 * What one watcher is told at once. Applied in order (sets, then deletes) it takes the watcher from what it knew to the state
 * of `revision`, and never shows it an endpoint without its service.
 */
export interface ChangeSet<Item extends SetItem = SetItem> {
  readonly revision: number
  /** The whole state follows; what was known before is void. */
  readonly reset: boolean
  /** New and changed things, in batches. Made while it is walked when it is the whole state; may be walked again. */
  readonly batches: Iterable<Batch<Item>>
  /** The same, one by one. */
  readonly sets: Iterable<Item>
  readonly deletes: readonly DeleteItem[]
  readonly triggers: readonly Trigger[]
  /** Where the time went so far; not for the whole state. */
  readonly timeline?: Timeline
}

/** A watcher: remembers only what it asked for and the revision it has. */
export interface Watch<Item extends SetItem = SetItem> {
  /** The next change set, or undefined when there is nothing new. */
  poll(): ChangeSet<Item> | undefined
}
