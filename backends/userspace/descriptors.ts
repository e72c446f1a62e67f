import type { Log } from '@kpng/api'

const codes = new Set(['EMFILE', 'ENFILE'])

export const isOutOfDescriptors = (error: NodeJS.ErrnoException): boolean => codes.has(error.code ?? '')

interface Waiter {
  readonly resume: () => void
  readonly giveUp: () => void
  readonly deadline: number
}

/** A process that shares the machine's limit may free some without telling us. */
const checkEveryMs = 200
const patienceMs = 30_000

/**
 * What to do when the process has no file descriptor left for the second half of a connection. States: *free*; *used up*:
 * clients that were accepted wait unread, in order, and go on one for each connection that ends.
 */
export class Descriptors {
  readonly #log: Log
  readonly #waiting: Waiter[] = []
  #timer: NodeJS.Timeout | undefined
  #usedUp = false

  constructor(log: Log) {
    this.#log = log
  }

  get usedUp(): boolean {
    return this.#usedUp
  }

  /** Says that opening something failed for want of a descriptor. */
  report(error: NodeJS.ErrnoException): void {
    if (this.#usedUp) return
    this.#usedUp = true
    this.#log.error(
      'Too many open files: new connections wait until others end. Raise the limit (ulimit -n, LimitNOFILE)',
      {
        error: error.message,
      },
    )
    this.#timer = setInterval(() => this.#tick(), checkEveryMs)
    this.#timer.unref()
  }

  wait(resume: () => void, giveUp: () => void): void {
    this.#waiting.push({ resume, giveUp, deadline: Date.now() + patienceMs })
  }

  /** A connection has ended. */
  released(): void {
    if (this.#usedUp) this.#resumeOne()
  }

  close(): void {
    clearInterval(this.#timer)
    for (const { giveUp } of this.#waiting.splice(0)) giveUp()
  }

  #tick(): void {
    const now = Date.now()
    while (this.#waiting[0] && this.#waiting[0].deadline <= now) this.#waiting.shift()?.giveUp()
    this.#resumeOne()
  }

  #resumeOne(): void {
    const waiter = this.#waiting.shift()
    if (waiter) {
      waiter.resume()
      return
    }
    this.#usedUp = false
    clearInterval(this.#timer)
    this.#log.info('Open files are below the limit again: connections are accepted as usual')
  }
}
