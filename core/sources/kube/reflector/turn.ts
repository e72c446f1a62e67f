import { setImmediate } from 'node:timers/promises'

/**
 * Keeps a long piece of work from holding up everything else in the process: between its steps it asks whether its turn is
 * over, and if so lets others run.
 */
export class Turn {
  readonly #longestMs: number
  #since = 0

  constructor(longestMs = 8) {
    this.#longestMs = longestMs
  }

  /** Work begins, after a time in which others could run. */
  begin(): void {
    this.#since = performance.now()
  }

  get isOver(): boolean {
    return performance.now() - this.#since >= this.#longestMs
  }

  async letOthersRun(): Promise<void> {
    await setImmediate()
    this.begin()
  }
}
