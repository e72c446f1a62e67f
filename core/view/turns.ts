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
