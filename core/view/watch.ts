import type { Bookmark, ChangeRange, Store } from '../store/index.js'
import { finish, type Turns, type Work } from './turns.js'

/** A watcher of a store: remembers only what it asked for and the revision it has. */
export abstract class Watch<Told> {
  protected readonly store: Store
  readonly #turns: Turns
  #bookmark: Bookmark | undefined
  #stopListening: (() => void) | undefined
  /** Ends the wait of `next`. */
  #wake = () => {}
  /** While it is not working, what the watcher was told is all that there is up to its bookmark. Once called, it has its turn soon. */
  #state: 'working' | 'waiting' | 'called' = 'working'
  #closed: { readonly reason: unknown } | undefined

  constructor(store: Store, turns: Turns) {
    this.store = store
    this.#turns = turns
  }

  /** The revision up to which the watcher was told what it should know. 0: nothing yet. */
  get revision(): number {
    return this.#bookmark?.revision ?? 0
  }

  /** Waits for the next change. Ask one at a time. Rejects when the watch is closed. */
  async next(): Promise<Told> {
    this.#stopListening ??= this.store.onChange(() => this.#call())
    for (;;) {
      if (this.#isBehind) {
        const working = this.#turns.run(this.#advance())
        const told = working instanceof Promise ? await working : working
        if (told && !this.#closed) return told
      }
      if (this.#closed) throw this.#closed.reason
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

  /** The next change, or undefined when there is nothing new. Others wait until it is worked out. */
  poll(): Told | undefined {
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
  protected abstract everything(revision: number): Work<Told | undefined>

  /** What a range of changes means to this watcher; undefined when nothing. */
  protected abstract changes(range: ChangeRange): Work<Told | undefined>

  get #isBehind(): boolean {
    return this.store.synced && !this.#closed && this.#bookmark?.revision !== this.store.revision
  }

  *#advance(): Work<Told | undefined> {
    if (!this.#isBehind) return undefined
    const range = this.#bookmark && this.store.changesSince(this.#bookmark)
    const { revision } = this.store
    this.#moveTo(this.store.bookmark())
    if (range) return yield* this.changes(range)
    return yield* this.everything(revision)
  }

  #moveTo(bookmark: Bookmark | undefined): void {
    if (this.#bookmark) this.store.release(this.#bookmark)
    this.#bookmark = bookmark
  }
}
