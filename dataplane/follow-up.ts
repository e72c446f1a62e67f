/**
 * Work after syncs that must not delay the next sync for long. There is one round at a time. Requests during a round are done
 * together in the next one, so that each request is followed by a complete round.
 */
export class FollowUp<Request, Result> {
  readonly #work: (requests: readonly Request[]) => Promise<Result>
  #waiting: Request[] = []
  #round: Promise<unknown> | undefined
  #nextRound: Promise<Result> | undefined

  /** @param work must not reject; it begins at once if nothing is under way */
  constructor(work: (requests: readonly Request[]) => Promise<Result>) {
    this.#work = work
  }

  /** Resolves when the request is done. */
  ask(request: Request): Promise<Result> {
    this.#waiting.push(request)
    if (!this.#round) return this.#begin()
    this.#nextRound ??= this.#round.then(() => this.#begin())
    return this.#nextRound
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#round) await this.#round
  }

  #begin(): Promise<Result> {
    const requests = this.#waiting
    this.#waiting = []
    this.#nextRound = undefined
    const work = this.#work(requests)
    const round: Promise<unknown> = work.then(() => {
      if (this.#round === round && !this.#nextRound) this.#round = undefined
    })
    this.#round = round
    return work
  }
}

/**
 * How long a sync waits for such work. Usually the work is done by then. If it takes longer, the next changes are more urgent.
 */
const syncWaitMs = 10

/** The result of the work, or undefined if it takes longer. */
export async function briefly<Result>(work: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, syncWaitMs, undefined)
  })
  try {
    return await Promise.race([work, timeUp])
  } finally {
    clearTimeout(timer)
  }
}
