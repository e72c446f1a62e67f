import { none, type Timeline, type Trigger } from '../../store/index.js'
import type { DeleteItem, SetItem } from './item.js'

/** Things that are told together. */
export interface Batch<T> {
  readonly items: readonly T[]
  /** Whether many watchers are told these: then they all get the same array, and what is made from it can be shared. */
  readonly isShared: boolean
  /** The paths among the items that this watcher is not told: it is told its own instead. */
  readonly except?: ReadonlySet<string>
}

/** What one watcher is told, and nobody else. */
export const batchOf = <T>(items: readonly T[]): readonly Batch<T>[] =>
  items.length > 0 ? [{ items, isShared: false }] : none

/** What all watchers are told that see the same. */
export const sharedBatchOf = <T>(items: readonly T[]): readonly Batch<T>[] =>
  items.length > 0 ? [{ items, isShared: true }] : none

/** What a watcher shares with others and, for some paths, its own instead. */
export function mixedBatches<T extends { readonly path: string }>(
  shared: readonly T[],
  paths: ReadonlySet<string>,
  own: readonly T[],
): readonly Batch<T>[] {
  let left = shared.length
  for (const { path } of shared) if (paths.has(path)) left--
  if (left === shared.length) return [...sharedBatchOf(shared), ...batchOf(own)]
  return left === 0 ? batchOf(own) : [{ items: shared, isShared: true, except: paths }, ...batchOf(own)]
}

/** The same in one batch, of which all frames are shared, if many watchers are told all of it. */
export const inOneBatch = <T>(batches: readonly Batch<T>[]): readonly Batch<T>[] =>
  batches.length < 2 || batches.some(({ isShared, except }) => !isShared || except)
    ? batches
    : sharedBatchOf(batches.flatMap(({ items }) => items))

/** One batch without what is in some others that were put into it. */
export function without<T extends { readonly path: string }>(
  batches: readonly Batch<T>[],
  others: readonly Batch<T>[],
): readonly Batch<T>[] {
  const except = new Set(others.flatMap(({ items }) => items.map(({ path }) => path)))
  if (except.size === 0) return batches
  return batches.flatMap((batch) => (batch.items.length === except.size ? none : { ...batch, except }))
}

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
  readonly timeline?: Timeline | undefined
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

  /** Undefined if nothing changed. */
  static ofChange<Item extends SetItem>(
    told: Omit<Told<Item>, 'reset'> & {
      readonly setBatches: readonly Batch<Item>[]
      readonly deleteBatches: readonly Batch<DeleteItem>[]
    },
  ): ChangeSet<Item> | undefined {
    const isEmpty = told.setBatches.length + told.deleteBatches.length === 0
    return isEmpty ? undefined : new ChangeSet({ ...told, reset: false })
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
