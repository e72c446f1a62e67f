import type { Socket } from 'node:net'

/** So many new connections are begun in one turn of the event loop. Each takes up to half a millisecond. */
const perTurn = 32

/** After this time no more are begun in a turn. With TLS, or while memory is being freed, each takes a few milliseconds. */
const turnMs = 10

/** For so long connections are only accepted, as long as more come. The kernel's queue is short, and clients that do not fit into it are turned away. */
const acceptOnlyMs = 10

export interface AdmissionSettings {
  /** Begins to work on a connection. */
  readonly admit: (socket: Socket) => void
  /** Monotonic time in milliseconds. Default performance.now. */
  readonly nowMs?: () => number
}

/**
 * Lets new connections in a few at a time, in the order in which they came. After a restart or an outage thousands of clients connect at
 * once, and have sent their first bytes before anybody reads them. If they were all read in one turn of the event loop, all other clients
 * would wait. A connection that waits must be paused. A client that says nothing keeps nobody waiting.
 */
export class Admission {
  readonly #admit: (socket: Socket) => void
  readonly #nowMs: () => number
  #waiting: Socket[] = []
  #isScheduled = false
  /** Since when some wait while more come. */
  #waitingSinceMs: number | undefined
  #hasMore = false

  constructor({ admit, nowMs = () => performance.now() }: AdmissionSettings) {
    this.#admit = admit
    this.#nowMs = nowMs
  }

  add(socket: Socket): void {
    this.#waiting.push(socket)
    this.#hasMore = true
    this.#schedule()
  }

  /** Closes those that wait. */
  close(): void {
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#run())
  }

  /** Node accepts one connection in each turn of the event loop. */
  #run(): void {
    this.#isScheduled = false
    const nowMs = this.#nowMs()
    this.#waitingSinceMs ??= nowMs
    if (this.#hasMore && nowMs < this.#waitingSinceMs + acceptOnlyMs) {
      this.#hasMore = false
      this.#schedule()
      return
    }
    this.#waitingSinceMs = undefined
    let count = 0
    for (const socket of this.#waiting.slice(0, perTurn)) {
      if (!socket.destroyed) this.#admit(socket)
      count++
      if (this.#nowMs() >= nowMs + turnMs) break
    }
    this.#waiting = this.#waiting.slice(count)
    if (this.#waiting.length > 0) this.#schedule()
  }
}
