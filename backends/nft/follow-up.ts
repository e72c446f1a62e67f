/**
 * Work that follows syncs and that no sync waits for long. One round at a time: what is asked for during a round is done together
 * in the next one, so that each request is followed by a whole round.
 */
export class FollowUp<Request, Result> {
  readonly #work: (requests: readonly Request[]) => Promise<Result>
  #waiting: Request[] = []
  #round: Promise<unknown> | undefined
  #nextRound: Promise<Result> | undefined

  /** @param work must not reject; it begins at once when nothing is under way */
  constructor(work: (requests: readonly Request[]) => Promise<Result>) {
    this.#work = work
  }

  /** Resolves when what is asked for has been done. */
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
 * What a sync waits for such work. Mostly it is done by then, and whoever waits for the sync finds it done; where there is a lot
 * to look through, the next changes are more urgent.
 */
const patienceMs = 10

/** What came of the work, or undefined when it goes on. */
export async function briefly<Result>(work: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, patienceMs, undefined)
  })
  try {
    return await Promise.race([work, timeUp])
  } finally {
    clearTimeout(timer)
  }
}
