import type { Log } from '@kpng/api'
import { openFiles, openFilesLimit } from '@kpng/linux'
import { later as byTimer, type Later } from './later.js'

/** Where the limit cannot be read there is none that we know of. Infinity has no eighth, and threads share 32 bits. */
const noLimit = 2 ** 31 - 1

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
  readonly limit: number
  readonly #forClients: number
  readonly #forConnections: number
  readonly #forListening: number
  readonly #forPrograms: number
  readonly #later: Later
  /** How many files are open, and how many of them are proxy sockets. Threads share it. */
  readonly counts: Int32Array
  readonly #waiting: Waiter[] = []
  #stopTimer: () => void = () => {}
  #usedUp = false

  constructor(
    log: Log,
    limit = openFilesLimit() ?? noLimit,
    open: number | Int32Array = openFiles() ?? 0,
    later: Later = byTimer,
  ) {
    this.#log = log
    this.limit = limit
    this.#later = later
    this.counts = typeof open === 'number' ? new Int32Array(new SharedArrayBuffer(8)) : open
    if (typeof open === 'number') this.counts[0] = open
    const eighth = Math.max(16, Math.floor(limit / 8))
    const reserve = Math.min(largestReserve, eighth)
    this.#forClients = limit - reserve
    this.#forListening = Math.floor(limit / 2)
    this.#forPrograms = limit - Math.floor(reserve / 2)
    this.#forConnections = this.#forClients - eighth
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
    this.add(1)
    return () => this.remove(1)
  }

  /** Some were opened. */
  add(files: number): void {
    Atomics.add(this.counts, 0, files)
  }

  /** Some were closed. */
  remove(files: number): void {
    Atomics.sub(this.counts, 0, files)
    if (this.#usedUp && this.#open < this.#forConnections) this.#resumeOne()
  }

  /** Whether another proxy socket can be opened. */
  get canListen(): boolean {
    return Atomics.load(this.counts, 1) < this.#forListening && this.#open < this.#forPrograms
  }

  /** The same as `opened` for a proxy socket. */
  listening(): () => void {
    Atomics.add(this.counts, 1, 1)
    this.add(1)
    return () => {
      Atomics.sub(this.counts, 1, 1)
      this.remove(1)
    }
  }

  /** Opening something failed all the same. */
  report(error: NodeJS.ErrnoException): void {
    if (!this.#usedUp) this.#begin(error.message)
  }

  wait(resume: () => void, giveUp: () => void): void {
    this.#waiting.push({ resume, giveUp, deadline: performance.now() + patienceMs })
  }

  close(): void {
    this.#stopTimer()
    for (const { giveUp } of this.#waiting.splice(0)) giveUp()
  }

  get #open(): number {
    return Atomics.load(this.counts, 0)
  }

  #begin(why: string): void {
    this.#usedUp = true
    this.#log.error(
      'Too many open files: new connections wait until others end. Raise the limit (ulimit -n, LimitNOFILE=)',
      { why },
    )
    this.#stopTimer = this.#later(checkEveryMs, () => this.#tick())
  }

  #tick(): void {
    this.#stopTimer = this.#later(checkEveryMs, () => this.#tick())
    const now = performance.now()
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
    this.#stopTimer()
    this.#log.info('Open files are below the limit again: connections are accepted as usual')
  }
}
