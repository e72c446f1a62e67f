/** A step of work that may take a while: it yields where others may come in between. */
export type Work<T> = Generator<undefined, T>

/** Does all of it while others wait. */
export function finish<T>(work: Work<T>): T {
  let step = work.next()
  while (!step.done) step = work.next()
  return step.value
}

/** Work that several need. Each of them continues where the last one stopped. */
export function shared<T>(work: Work<T>): () => Work<T> {
  let result: { readonly value: T } | undefined
  return function* () {
    while (!result) {
      const step = work.next()
      if (step.done) result = { value: step.value }
      else yield
    }
    return result.value
  }
}
