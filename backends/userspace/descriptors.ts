import type { Log } from '@kpng/api'
import { openFiles, openFilesLimit } from '@kpng/linux'

/** Where the limit cannot be read there is none that we know of. Infinity has no eighth. */
const noLimit = Number.MAX_SAFE_INTEGER

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
/** Enough for programs, for connections to the API server, for readers of metrics, and for new proxy sockets. */
const largestReserve = 64

/**
 * Keeps the process below its limit of open files. Every connection needs two: the client's and the endpoint's. States:
 * *free*; *used up*: clients that were accepted wait unread, in order, until others end; *full*: clients are turned away. An eighth
 * of the limit is for those who wait. Some more is never given to clients: programming the machine needs sockets and programs,
 * however many clients there are. Proxy sockets may have half of the limit: without a descriptor for a
 * client they would be of no use, and without one for a program no packet would be steered to any of them.
 */
export class Descriptors {
  readonly #log: Log
  readonly #forClients: number
  readonly #forConnections: number
  readonly #forListening: number
  readonly #forPrograms: number
  readonly #waiting: Waiter[] = []
  #open: number
  #listening = 0
  #timer: NodeJS.Timeout | undefined
  #usedUp = false

  constructor(log: Log, limit = openFilesLimit() ?? noLimit, openNow = openFiles() ?? 0) {
    this.#log = log
    const eighth = Math.max(16, Math.floor(limit / 8))
    const reserve = Math.min(largestReserve, eighth)
    this.#forClients = limit - reserve
    this.#forListening = Math.floor(limit / 2)
    this.#forPrograms = limit - Math.floor(reserve / 2)
    this.#forConnections = this.#forClients - eighth
    this.#open = openNow
  }

  /** Whether a caller that wants to open something must wait. */
  get usedUp(): boolean {
    if (!this.#usedUp && this.#open >= this.#forConnections) this.#begin(`${this.#open} are open`)
    return this.#usedUp
  }

  /** Whether a new client must be turned away. */
  get full(): boolean {
    return this.#open >= this.#forClients
  }

  /** Something was opened; what is returned is called when it is closed. */
  opened(): () => void {
    this.#open++
    return () => {
      this.#open--
      if (this.#usedUp && this.#open < this.#forConnections) this.#resumeOne()
    }
  }

  /** Whether another proxy socket can be opened. */
  get canListen(): boolean {
    return this.#listening < this.#forListening && this.#open < this.#forPrograms
  }

  /** The same as `opened` for a proxy socket. */
  listening(): () => void {
    this.#listening++
    const closed = this.opened()
    return () => {
      this.#listening--
      closed()
    }
  }

  /** Opening something failed all the same. */
  report(error: NodeJS.ErrnoException): void {
    if (!this.#usedUp) this.#begin(error.message)
  }

  wait(resume: () => void, giveUp: () => void): void {
    this.#waiting.push({ resume, giveUp, deadline: Date.now() + patienceMs })
  }

  close(): void {
    clearInterval(this.#timer)
    for (const { giveUp } of this.#waiting.splice(0)) giveUp()
  }

  #begin(why: string): void {
    this.#usedUp = true
    this.#log.error(
      'Too many open files: new connections wait until others end. Raise the limit (ulimit -n, LimitNOFILE=)',
      { why },
    )
    this.#timer = setInterval(() => this.#tick(), checkEveryMs)
    this.#timer.unref()
  }

  #tick(): void {
    const now = Date.now()
    while (this.#waiting[0] && this.#waiting[0].deadline <= now) this.#waiting.shift()?.giveUp()
    if (this.#open < this.#forConnections) this.#resumeOne()
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
