/**
 * A program that runs may still read what was just replaced. Whatever is freed rests here until every program run that could have seen
 * it has ended. One grace period serves everything that rests when it begins.
 */
export class GracePeriods {
  readonly #wait: () => Promise<void>
  #resting: (() => void)[] = []
  #isRunning = false

  /** @param wait resolves when every program run that began before the call has ended; must not reject */
  constructor(wait: () => Promise<void>) {
    this.#wait = wait
  }

  /** Calls `free` after a grace period. */
  after(free: () => void): void {
    this.#resting.push(free)
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#run()
  }

  /** Resolves after a grace period that begins after this call; everything that rests now is free then. */
  whenOver(): Promise<void> {
    return new Promise((resolve) => this.after(resolve))
  }

  /** Whether something rests. */
  get isBusy(): boolean {
    return this.#isRunning
  }

  async #run(): Promise<void> {
    while (this.#resting.length > 0) {
      const now = this.#resting
      this.#resting = []
      await this.#wait()
      for (const free of now) free()
    }
    this.#isRunning = false
  }
}
