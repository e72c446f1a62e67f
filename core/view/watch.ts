import type { Bookmark, ChangeRange, Store } from '../store/index.js'
import { ChangeSet, type Trigger, type WholeState } from './change-set.js'
import type { Batch, DeleteItem, SetItem } from './items.js'
import { finish, type Work } from './work.js'

/** `queueMicrotask` does more than is needed here. */
const inNextMicrotask = Promise.resolve()

/**
 * Divides the event loop between many pieces of work and everything else that the process does. Work asks `isOver` between its steps
 * and, when the turn is over, waits for `next`. Waiting work continues in the order of asking, as much in one turn as there is time.
 */
export class Turns {
  readonly #turnMs: number
  readonly #waiting: (() => void)[] = []
  #endsAt = 0
  #isDeferred = false

  /** @param turnMs how long work may keep everything else waiting */
  constructor(turnMs = 10) {
    this.#turnMs = turnMs
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    return new Promise((resolve) => this.enter(resolve))
  }

  /** Calls back when it is the caller's turn. */
  enter(resume: () => void): void {
    if (this.#waiting.push(resume) === 1) setImmediate(() => this.#begin())
  }

  /**
   * Something came that is quickly done and has more behind it, such as a new connection: Node takes one in each turn of the event loop. No work is done until
   * nothing like it comes, or for the length of a turn.
   */
  defer(): void {
    this.#isDeferred = true
  }

  /** Does a piece of work in turns. Returns the result itself, without a promise, if the work ends within this turn: after a change, thousands of watchers call this. */
  run<T>(work: Work<T>): T | Promise<T> {
    while (!this.isOver) {
      const step = work.next()
      if (step.done) return step.value
    }
    return this.#continue(work)
  }

  async #continue<T>(work: Work<T>): Promise<T> {
    for (;;) {
      await this.next()
      do {
        const step = work.next()
        if (step.done) return step.value
      } while (!this.isOver)
    }
  }

  #begin(): void {
    const now = performance.now()
    if (this.#isDeferred && now < this.#endsAt + this.#turnMs) {
      this.#isDeferred = false
      setImmediate(() => this.#begin())
      return
    }
    this.#endsAt = now + this.#turnMs
    this.#resumeFirst()
  }

  /** The first one works until it waits for something; then it is the next one's turn, if there is time left. */
  #resumeFirst(): void {
    this.#waiting.shift()?.()
    if (this.#waiting.length > 0) void inNextMicrotask.then(this.#resumeNext)
  }

  readonly #resumeNext = () => {
    if (this.isOver) setImmediate(() => this.#begin())
    else this.#resumeFirst()
  }
}

/** A watcher of a store: remembers only what it asked for and the revision it has. */
export abstract class Watch<Item extends SetItem = SetItem> {
  protected readonly store: Store
  readonly #turns: Turns
  #bookmark: Bookmark | undefined
  #stopListening: (() => void) | undefined
  /** Ends the wait of `next`. */
  #wake = () => {}
  /** While it is not working, what the watcher was told is all that there is up to its bookmark. Once called, it has its turn soon. */
  #state: 'working' | 'waiting' | 'called' = 'working'
  #closed: { readonly reason: unknown } | undefined

  /** @param from where the watcher was, if it has been here before; the watch releases it */
  constructor(store: Store, turns: Turns, from?: Bookmark) {
    this.store = store
    this.#turns = turns
    this.#bookmark = from
  }

  /** The revision up to which the watcher was told what it should know. 0: nothing yet. */
  get revision(): number {
    return this.#bookmark?.revision ?? 0
  }

  /**
   * Waits for the next change set. Ask one at a time. Rejects when the watch is closed.
   * @param evenIfEmpty a watcher that continues from a bookmark is told at once, even if nothing has changed for it
   */
  async next(evenIfEmpty = false): Promise<ChangeSet<Item>> {
    this.#stopListening ??= this.store.onChange(() => this.#call())
    for (;;) {
      if (this.#isBehind) {
        const working = this.#turns.run(this.#advance())
        const changeSet = working instanceof Promise ? await working : working
        if (changeSet && !this.#closed) return changeSet
      }
      if (this.#closed) throw this.#closed.reason
      if (evenIfEmpty && this.#bookmark) return ChangeSet.nothing(this.revision)
      if (this.#isBehind) continue
      this.#state = 'waiting'
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#state = 'working'
    }
  }

  #call(): void {
    if (this.#state !== 'waiting') return
    this.#state = 'called'
    this.#turns.enter(this.#wake)
  }

  /**
   * Closes the watch, and hands over its bookmark to the caller: a watcher that comes back with what it was told can continue there. Undefined if it
   * is being told something: it is not known then what it has.
   */
  leave(reason?: unknown): Bookmark | undefined {
    const left = this.#state !== 'working' && !this.#closed ? this.#bookmark : undefined
    if (left) this.#bookmark = undefined
    this.close(reason)
    return left
  }

  /** The next change set, or undefined when there is nothing new. Others wait until it is worked out. */
  poll(): ChangeSet<Item> | undefined {
    return finish(this.#advance())
  }

  /**
   * Call it when the watch is no longer needed: until then the store keeps for it what it has not seen. A `next` that waits rejects with the
   * reason.
   */
  close(reason: unknown = new Error('The watch is closed')): void {
    this.#closed ??= { reason }
    this.#stopListening?.()
    this.#moveTo(undefined)
    this.#wake()
  }

  /** The whole state. What it is made from must not change later. */
  protected abstract everything(): Work<WholeState<Item>>

  /** What a range of changes means to this watcher; undefined when nothing. */
  protected abstract changes(range: ChangeRange): Work<ChangeSet<Item> | undefined>

  protected changeSet(
    { revision, receivedAtMs, committedAtMs }: ChangeRange,
    setBatches: readonly Batch<Item>[],
    deleteBatches: readonly Batch<DeleteItem>[],
    triggers: readonly Trigger[],
  ): ChangeSet<Item> | undefined {
    if (setBatches.length + deleteBatches.length === 0) return undefined
    const viewedAtMs = performance.timeOrigin + performance.now()
    const timeline = { revision, receivedAtMs, committedAtMs, viewedAtMs }
    return new ChangeSet({ revision, reset: false, setBatches, deleteBatches, triggers, timeline })
  }

  get #isBehind(): boolean {
    return this.store.synced && !this.#closed && this.#bookmark?.revision !== this.store.revision
  }

  *#advance(): Work<ChangeSet<Item> | undefined> {
    if (!this.#isBehind) return undefined
    const range = this.#bookmark && this.store.changesSince(this.#bookmark)
    const { revision } = this.store
    this.#moveTo(this.store.bookmark())
    if (range) return yield* this.changes(range)
    return ChangeSet.ofWhole(revision, yield* this.everything())
  }

  #moveTo(bookmark: Bookmark | undefined): void {
    if (this.#bookmark) this.store.release(this.#bookmark)
    this.#bookmark = bookmark
  }
}
