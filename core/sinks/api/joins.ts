/** So many watchers are sent a whole state, or say what they have in detail, at a time. More would only make all of them wait longer, and take memory. */
const atOnce = 32

/** A watcher that reads slowly gives its slot to the next one after this time, and goes on. */
const slotMs = 2000

/** Paces watchers that need much: after a long outage there may be thousands. */
export class Joins {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(slots = atOnce) {
    this.#free = slots
  }

  /** Resolves when it is the caller's turn, in the order of asking. Call what it resolves with when the state is sent. */
  async enter(): Promise<() => void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    let isHeld = true
    const leave = () => {
      clearTimeout(timer)
      if (isHeld) this.#leave()
      isHeld = false
    }
    const timer = setTimeout(leave, slotMs).unref()
    return leave
  }

  #leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#free++
  }
}
