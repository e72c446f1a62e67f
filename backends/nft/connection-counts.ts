import { type Log, messageOf } from '@kpng/api'
import type { ServicePortConnections } from './connection-totals.js'

/** Reads the kernel's counters for whoever asks. Never rejects: what cannot be read is what it was before. */
export class ConnectionCounts {
  readonly #read: () => Promise<readonly ServicePortConnections[]>
  readonly #log: Log
  #last: readonly ServicePortConnections[] = []
  #reading: Promise<readonly ServicePortConnections[]> | undefined

  constructor(read: () => Promise<readonly ServicePortConnections[]>, log: Log) {
    this.#read = read
    this.#log = log
  }

  /** Two who ask at once get one answer: an older one that came later would look like counters that began anew. */
  get = (): Promise<readonly ServicePortConnections[]> => {
    this.#reading ??= this.#readOrLast().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readOrLast(): Promise<readonly ServicePortConnections[]> {
    try {
      this.#last = await this.#read()
    } catch (error) {
      this.#log.warn('New connections cannot be read; the metrics show what was read before', {
        error: messageOf(error),
      })
    }
    return this.#last
  }
}
