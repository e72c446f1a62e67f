import type { Socket } from 'node:net'

/** So many new connections are worked on at a time. Each takes up to half a millisecond, with TLS a few milliseconds. */
const atOnce = 32

/** A client that has said nothing after this time is not waited for: the next connection is worked on. */
const silentMs = 50

/** For so long connections are only accepted, as long as more come. The kernel's queue is short, and clients that do not fit into it are turned away. */
const acceptOnlyMs = 10

export interface AdmissionSettings {
  /** Begins to work on a connection. */
  readonly admit: (socket: Socket) => void
  /** Monotonic time in milliseconds. Default performance.now. */
  readonly nowMs?: () => number
}

/**
 * Lets new connections in a few at a time, in the order in which they came. After a restart or an outage thousands of clients connect at once, and have sent their first
 * bytes before anybody reads them: read in one turn of the event loop, those would keep all other clients waiting. A connection that waits must be paused.
 */
export class Admission {
  readonly #admit: (socket: Socket) => void
  readonly #nowMs: () => number
  readonly #waiting: Socket[] = []
  /** Let in, and nothing read of them yet. */
  #begun: { readonly socket: Socket; readonly untilMs: number }[] = []
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
    if (!this.#isScheduled) this.#schedule()
  }

  /** Closes those that wait. */
  close(): void {
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #schedule(delayMs?: number): void {
    this.#isScheduled = true
    if (delayMs === undefined) setImmediate(() => this.#run())
    else setTimeout(() => this.#run(), delayMs)
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
    const isSilent = ({ socket, untilMs }: { socket: Socket; untilMs: number }) =>
      !socket.destroyed && socket.bytesRead === 0 && nowMs < untilMs
    this.#begun = this.#begun.filter(isSilent)
    const admitted = this.#waiting.splice(0, atOnce - this.#begun.length)
    for (const socket of admitted) {
      if (socket.destroyed) continue
      this.#begun.push({ socket, untilMs: nowMs + silentMs })
      this.#admit(socket)
    }
    // If nobody was let in, all have been silent so far: to look again in each turn would only take CPU.
    if (this.#waiting.length > 0) this.#schedule(admitted.length > 0 ? undefined : 1)
  }
}
