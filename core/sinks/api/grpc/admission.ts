import type { Socket } from 'node:net'

/** So many new connections are worked on at a time. Each takes up to half a millisecond, with TLS a few milliseconds. */
const atOnce = 32

/** A client that has said nothing after this time is not waited for: the next connection is worked on. */
const silentMs = 50

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

  constructor({ admit, nowMs = () => performance.now() }: AdmissionSettings) {
    this.#admit = admit
    this.#nowMs = nowMs
  }

  add(socket: Socket): void {
    this.#waiting.push(socket)
    if (!this.#isScheduled) this.#run()
  }

  /** Closes those that wait. */
  close(): void {
    for (const socket of this.#waiting.splice(0)) socket.destroy()
  }

  #run(): void {
    this.#isScheduled = false
    const nowMs = this.#nowMs()
    this.#begun = this.#begun.filter(
      ({ socket, untilMs }) => !socket.destroyed && socket.bytesRead === 0 && nowMs < untilMs,
    )
    const admitted = this.#waiting.splice(0, atOnce - this.#begun.length)
    for (const socket of admitted) {
      if (socket.destroyed) continue
      this.#begun.push({ socket, untilMs: nowMs + silentMs })
      this.#admit(socket)
    }
    if (this.#waiting.length === 0) return
    this.#isScheduled = true
    // If nobody was let in, all have been silent so far: to look again in each turn would only take CPU.
    if (admitted.length > 0) setImmediate(() => this.#run())
    else setTimeout(() => this.#run(), 1)
  }
}
