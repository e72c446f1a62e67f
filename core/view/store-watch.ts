import type { ChangeRange, Store } from '../store/index.js'
import { type Batch, batchOf, type ChangeSet, itemsOf, type Trigger, type Watch } from './change-set.js'
import type { DeleteItem, SetItem } from './items.js'

/** A watch of the store: knows the revision that its watcher has, and nothing else of it. */
export abstract class StoreWatch<Item extends SetItem> implements Watch<Item> {
  protected readonly store: Store
  #revision: number | undefined

  constructor(store: Store) {
    this.store = store
  }

  poll(): ChangeSet<Item> | undefined {
    const { store } = this
    if (!store.synced || this.#revision === store.revision) return undefined
    const range = this.#revision === undefined ? undefined : store.changesSince(this.#revision)
    this.#revision = store.revision
    return range ? this.changes(range) : this.#whole()
  }

  /** The whole state, made while it is walked. What it is made from must not change later. */
  protected abstract everything(): () => Generator<Batch<Item>>

  /** What a range of changes means to this watcher; undefined when nothing. */
  protected abstract changes(range: ChangeRange): ChangeSet<Item> | undefined

  protected changeSet(
    range: ChangeRange,
    sets: readonly Item[],
    deletes: readonly DeleteItem[],
    triggers: readonly Trigger[],
  ): ChangeSet<Item> | undefined {
    if (sets.length + deletes.length === 0) return undefined
    const { to: revision, receivedAtMs, committedAtMs } = range
    const viewedAtMs = performance.timeOrigin + performance.now()
    const timeline = { revision, receivedAtMs, committedAtMs, viewedAtMs }
    return { revision, reset: false, batches: [batchOf(sets)], sets, deletes, triggers, timeline }
  }

  #whole(): ChangeSet<Item> {
    const walk = this.everything()
    return {
      revision: this.store.revision,
      reset: true,
      batches: { [Symbol.iterator]: walk },
      sets: { [Symbol.iterator]: () => itemsOf(walk()) },
      deletes: [],
      triggers: [],
    }
  }
}
