import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome } from '@kpng/linux/testing'

/** A request may take so long on a busy machine. What is refused fails at once. */
export const requestTimeoutMs = 10_000

/** Between two requests. Without it, those that are refused at once would keep the machine busy. */
const pauseMs = 10

/** Asks the same thing again and again, one request after the other. */
export class RequestLoop {
  readonly #outcomes: Outcome[] = []
  readonly #done: Promise<void>
  #isOver = false

  constructor(ask: (timeoutMs: number) => Promise<Outcome>) {
    this.#done = this.#run(ask)
    // The one that ends the loop hears of it. When the run is interrupted, nobody does.
    this.#done.catch(() => {})
  }

  /** Resolves with what came of every request when the last one is over. */
  async end(): Promise<readonly Outcome[]> {
    this.#isOver = true
    await this.#done
    return this.#outcomes
  }

  async #run(ask: (timeoutMs: number) => Promise<Outcome>): Promise<void> {
    do {
      this.#outcomes.push(await ask(requestTimeoutMs))
      await sleep(pauseMs)
    } while (!this.#isOver)
  }
}
