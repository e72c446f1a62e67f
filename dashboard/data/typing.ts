import { batch } from '@preact/signals'

// While somebody types, what comes from the agent waits: drawing it would delay the letters, and the list would move under them.

const restMs = 250
/** Even while somebody types on, nothing waits longer. */
const longestMs = 1000

let typedAt = Number.NEGATIVE_INFINITY

/** To be called with each key. */
export function noteTyping(): void {
  typedAt = performance.now()
}

/** Collects events while somebody types, and gives them on in their order. */
export class TypingPause<Event> {
  readonly #take: (event: Event) => void
  #waiting: Event[] = []
  #since = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(take: (event: Event) => void) {
    this.#take = take
  }

  push(event: Event): void {
    if (this.#waiting.length === 0) this.#since = performance.now()
    this.#waiting.push(event)
    this.#check()
  }

  #check(): void {
    clearTimeout(this.#timer)
    const now = performance.now()
    const waitMs = Math.min(typedAt + restMs, this.#since + longestMs) - now
    if (waitMs > 0) {
      this.#timer = setTimeout(() => this.#check(), waitMs)
      return
    }
    const events = this.#waiting
    this.#waiting = []
    batch(() => {
      for (const event of events) this.#take(event)
    })
  }
}
