import type { Timeline, Trigger } from '@kpng/client'
import { none } from '../store/index.js'
import type { Batch, DeleteItem, SetItem } from './items.js'

export type { Timeline, Trigger } from '@kpng/client'

/** What many watchers have in common. They share the object. */
export interface CommonState<Item extends SetItem = SetItem> {
  readonly batches: readonly Batch<Item>[]
}

/** A whole state: what is common to many watchers without some batches of it, and what this watcher has of its own, before and after it. */
export interface WholeState<Item extends SetItem = SetItem> {
  readonly head: readonly Batch<Item>[]
  readonly common: CommonState<Item>
  readonly without: readonly Batch<Item>[]
  readonly own: readonly Batch<Item>[]
}

/** What a change set is made of, in batches. */
export interface Told<Item extends SetItem> {
  readonly revision: number
  readonly reset: boolean
  readonly setBatches: Iterable<Batch<Item>>
  readonly deleteBatches: Iterable<Batch<DeleteItem>>
  readonly triggers: readonly Trigger[]
  readonly timeline?: Timeline
  readonly whole?: WholeState<Item>
}

/**
 * What one watcher is told at once. Applied in order (sets, then deletes) it takes the watcher from what it knew to the state
 * of `revision`, and never shows it an endpoint without its service.
 */
export class ChangeSet<Item extends SetItem = SetItem> implements Told<Item> {
  readonly revision: number
  /** The whole state follows; what was known before is void. */
  readonly reset: boolean
  /** New and changed things. */
  readonly setBatches: Iterable<Batch<Item>>
  readonly deleteBatches: Iterable<Batch<DeleteItem>>
  readonly triggers: readonly Trigger[]
  /** Where the time went so far; not for the whole state. */
  declare readonly timeline?: Timeline
  /** If the whole state follows: what it is made of. */
  declare readonly whole?: WholeState<Item>

  constructor({ revision, reset, setBatches, deleteBatches, triggers, timeline, whole }: Told<Item>) {
    this.revision = revision
    this.reset = reset
    this.setBatches = setBatches
    this.deleteBatches = deleteBatches
    this.triggers = triggers
    if (timeline) this.timeline = timeline
    if (whole) this.whole = whole
  }

  /** For a watcher that knows nothing, or nothing that counts. */
  static ofWhole<Item extends SetItem>(revision: number, whole: WholeState<Item>): ChangeSet<Item> {
    const setBatches = { [Symbol.iterator]: () => batchesOf(whole) }
    return new ChangeSet({ revision, reset: true, setBatches, deleteBatches: [], triggers: [], whole })
  }

  /** For a watcher that knows the state of this revision. */
  static nothing(revision: number): ChangeSet<never> {
    return new ChangeSet({ revision, reset: false, setBatches: none, deleteBatches: none, triggers: none })
  }

  /** New and changed things, one by one. */
  get sets(): Iterable<Item> {
    return oneByOne(this.setBatches)
  }

  /** What is gone, one by one. */
  get deletes(): Iterable<DeleteItem> {
    return oneByOne(this.deleteBatches)
  }
}

function* batchesOf<Item extends SetItem>({ head, common, without, own }: WholeState<Item>): Generator<Batch<Item>> {
  const leftOut = new Set(without)
  yield* head
  for (const batch of common.batches) if (!leftOut.has(batch)) yield batch
  yield* own
}

function* oneByOne<T extends { readonly path: string }>(batches: Iterable<Batch<T>>): Generator<T> {
  for (const { items, except } of batches) {
    for (const item of items) if (!except?.has(item.path)) yield item
  }
}
