import type { Timeline, Trigger } from '@kpng/client'
import type { Batch, DeleteItem, SetItem } from './items.js'

export type { Timeline, Trigger } from '@kpng/client'

/** What a change set is made of, in batches. */
export interface Told<Item extends SetItem> {
  readonly revision: number
  readonly reset: boolean
  readonly setBatches: Iterable<Batch<Item>>
  readonly deleteBatches: Iterable<Batch<DeleteItem>>
  readonly triggers: readonly Trigger[]
  readonly timeline?: Timeline
}

/**
 * What one watcher is told at once. Applied in order (sets, then deletes) it takes the watcher from what it knew to the state
 * of `revision`, and never shows it an endpoint without its service.
 */
export class ChangeSet<Item extends SetItem = SetItem> implements Told<Item> {
  readonly revision: number
  /** The whole state follows; what was known before is void. */
  readonly reset: boolean
  /** New and changed things. Made while it is walked when it is the whole state; may be walked again. */
  readonly setBatches: Iterable<Batch<Item>>
  readonly deleteBatches: Iterable<Batch<DeleteItem>>
  readonly triggers: readonly Trigger[]
  /** Where the time went so far; not for the whole state. */
  declare readonly timeline?: Timeline

  constructor({ revision, reset, setBatches, deleteBatches, triggers, timeline }: Told<Item>) {
    this.revision = revision
    this.reset = reset
    this.setBatches = setBatches
    this.deleteBatches = deleteBatches
    this.triggers = triggers
    if (timeline) this.timeline = timeline
  }

  /** For a watcher that knows the state of this revision. */
  static nothing(revision: number): ChangeSet<never> {
    return new ChangeSet({ revision, reset: false, setBatches: [], deleteBatches: [], triggers: [] })
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

function* oneByOne<T extends { readonly path: string }>(batches: Iterable<Batch<T>>): Generator<T> {
  for (const { items, except } of batches) {
    for (const item of items) if (!except?.has(item.path)) yield item
  }
}
