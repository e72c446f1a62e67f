import type { Bookmark, ChangeRange, Store } from '../store/index.js'

// Who works when: what takes long is done in steps, so that others come in between.

/** A step of work that may take a while: it yields where others may come in between. */
export type Work<T> = Generator<undefined, T>

/** Does all of it while others wait. */
export function finish<T>(work: Work<T>): T {
  let step = work.next()
  while (!step.done) step = work.next()
  return step.value
}

/** Work that several need. Each of them continues where the last one stopped. If it fails, it fails for all of them. */
export class SharedWork<T> {
  readonly #work: Work<T>
  #failure: { readonly error: unknown } | undefined
  /** Undefined until it is done. */
  result: T | undefined

  constructor(work: Work<T>) {
    this.#work = work
  }

  *finish(): Work<T> {
    while (this.result === undefined) if (!this.#step()) yield
    return this.result
  }

  /** Returns whether the work is done. */
  #step(): boolean {
    if (this.#failure) throw this.#failure.error
    try {
      const { done, value } = this.#work.next()
      if (done) this.result = value
      return done ?? false
    } catch (error) {
      this.#failure = { error }
      throw error
    }
  }
}

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
