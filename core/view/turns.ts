/**
 * Divides the event loop between many pieces of work and everything else that the process does. Work asks `isOver` between its steps
 * and, when the turn is over, waits for `next`. Whoever waits goes on in the order of asking, as many in one turn as there is time.
 */
export class Turns {
  readonly #turnMs: number
  readonly #waiting: (() => void)[] = []
  #endsAt = 0

  /** @param turnMs how long work may keep everything else waiting */
  constructor(turnMs = 10) {
    this.#turnMs = turnMs
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(() => this.#begin())
    })
  }

  #begin(): void {
    this.#endsAt = performance.now() + this.#turnMs
    this.#resumeFirst()
  }

  /** The first one works until it waits for something; then it is the next one's turn, if there is time left. */
  #resumeFirst(): void {
    this.#waiting.shift()?.()
    if (this.#waiting.length === 0) return
    queueMicrotask(() => (this.isOver ? void setImmediate(() => this.#begin()) : this.#resumeFirst()))
  }
}
