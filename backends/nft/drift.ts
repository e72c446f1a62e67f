import type { DriftWatch } from './netlink/drift-watch.js'

/** From here on the notifications of our own transaction would only overflow the socket that listens. */
const unheardFrom = 1000

/** Work of ours that changes the tables. */
export interface OwnWork {
  /** Transactions that it makes. */
  readonly transactions: number
  /** Whether they are made by a command, which the kernel cannot tell from somebody else's. */
  readonly byCommand: boolean
  /** Elements that are written. */
  readonly operations: number
}

/**
 * Tells the changes of others to our tables from our own. Of ours, some bear the port of our writer; of those that commands make
 * it is known how many there are; and of those that are too large to be listened to, by how much they raise the generation of
 * the kernel's tables.
 */
export class Drift {
  readonly #watch: DriftWatch
  /** A change by somebody else that was come across while something else was done. */
  #noticed: string | undefined
  #ownTransactions = 0
  #commandsAtWork = 0
  /** Commands since the last look, each with a port of its own. */
  #commandsHeard = 0

  constructor(watch: DriftWatch) {
    this.#watch = watch
  }

  /** From now on, changes by others count; earlier ones do not. */
  restart(): void {
    this.#noticed = undefined
    this.#watch.pause()
    this.#watch.listen()
  }

  /** Changes our tables. What others change meanwhile counts. */
  async during<Result>(own: OwnWork, work: () => Promise<Result>): Promise<Result> {
    return own.operations >= unheardFrom ? await this.#unheard(own, work) : await this.#heard(own, work)
  }

  async #heard<Result>({ transactions, byCommand }: OwnWork, work: () => Promise<Result>): Promise<Result> {
    if (byCommand) {
      this.#look()
      this.#commandsAtWork++
      this.#commandsHeard += transactions
    }
    try {
      const result = await work()
      this.#ownTransactions += transactions
      return result
    } finally {
      if (byCommand) this.#commandsAtWork--
      // We are told of our own changes too; under load they would fill the socket's buffer until the next look at it.
      this.#look()
    }
  }

  async #unheard<Result>({ transactions }: OwnWork, work: () => Promise<Result>): Promise<Result> {
    const generation = await this.#watch.generation()
    const ownBefore = this.#ownTransactions
    this.#look()
    this.#watch.pause()
    try {
      const result = await work()
      this.#ownTransactions += transactions
      return result
    } finally {
      this.#watch.listen()
      const seen = ((await this.#watch.generation()) - generation) >>> 0
      // Perhaps it was another table; but nobody listened.
      if (seen !== this.#ownTransactions - ownBefore)
        this.#noticed ??= 'somebody else changed tables during a large sync'
    }
  }

  /** Why our tables may not be what we made of them. Says it once. */
  take(): string | undefined {
    this.#look()
    const reason = this.#noticed
    this.#noticed = undefined
    return reason
  }

  /** While a command is at work, what is told may still be its. */
  #look(): void {
    if (this.#commandsAtWork > 0) return
    this.#noticed ??= this.#watch.check(this.#commandsHeard)
    this.#commandsHeard = 0
  }

  close(): void {
    this.#watch.close()
  }
}
