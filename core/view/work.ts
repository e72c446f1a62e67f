/** A step of work that may take a while: it yields where others may come in between. */
export type Work<T> = Generator<undefined, T>

/** Does all of it while others wait. */
export function finish<T>(work: Work<T>): T {
  let step = work.next()
  while (!step.done) step = work.next()
  return step.value
}

/** Work that several need. Each of them continues where the last one stopped. */
export class SharedWork<T> {
  readonly #work: Work<T>
  /** Undefined until it is done. */
  result: T | undefined

  constructor(work: Work<T>) {
    this.#work = work
  }

  *finish(): Work<T> {
    while (this.result === undefined) {
      const step = this.#work.next()
      if (step.done) this.result = step.value
      else yield
    }
    return this.result
  }
}
