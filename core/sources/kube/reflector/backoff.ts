export interface BackoffOptions {
  /** The first wait. Default 800. */
  readonly minMs?: number
  /** No wait is longer, except where the server itself asks for it. Default 30,000. */
  readonly maxMs?: number
  /** A watch that lived this long was healthy: the next failure waits `minMs` again. Default 60,000. */
  readonly resetAfterMs?: number
  /** Default Math.random. */
  readonly random?: () => number
}

/**
 * Waits that double from failure to failure. Each is jittered between half and all of its length, so that the watchers of a
 * server that restarts do not come back all at once.
 */
export class Backoff {
  readonly #minMs: number
  readonly #maxMs: number
  readonly #resetAfterMs: number
  readonly #random: () => number
  #nextMs: number

  constructor({ minMs = 800, maxMs = 30_000, resetAfterMs = 60_000, random = Math.random }: BackoffOptions = {}) {
    this.#minMs = minMs
    this.#maxMs = maxMs
    this.#resetAfterMs = resetAfterMs
    this.#random = random
    this.#nextMs = minMs
  }

  /** How long to wait now, after something that had lived for `livedMs`. */
  next(livedMs = 0): number {
    if (livedMs >= this.#resetAfterMs) this.#nextMs = this.#minMs
    const full = this.#nextMs
    this.#nextMs = Math.min(full * 2, this.#maxMs)
    return this.jittered(full)
  }

  jittered(ms: number): number {
    return ms * (0.5 + this.#random() / 2)
  }
}
