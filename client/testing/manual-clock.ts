import type { Clock } from '../runner.js'

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = 1_000_000
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>()

  now(): number {
    return this.#now
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** How long until the next timer; undefined when there is none. */
  get untilNext(): number | undefined {
    return this.#timers.size === 0 ? undefined : Math.min(...[...this.#timers].map(({ at }) => at)) - this.#now
  }

  advance(ms: number): void {
    this.#now += ms
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now) continue
      this.#timers.delete(timer)
      timer.callback()
    }
  }
}
