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
