interface Deadline {
  readonly atMs: number
  readonly call: () => void
}

/**
 * Calls that are due later. There are few different durations, and calls of one duration fall due in the order in which they came: so
 * each duration has a queue, and nothing is sorted.
 */
export class Deadlines {
  readonly #queues = new Map<number, Set<Deadline>>()

  /** @returns takes it back */
  add(atMs: number, durationMs: number, call: () => void): () => void {
    const deadline = { atMs, call }
    const queue = this.#queues.get(durationMs) ?? new Set()
    this.#queues.set(durationMs, queue)
    queue.add(deadline)
    return () => {
      queue.delete(deadline)
    }
  }

  /** When the next one is due. Undefined: there is none. */
  get next(): number | undefined {
    let next: number | undefined
    for (const [duration, queue] of this.#queues) {
      const [first] = queue
      if (!first) this.#queues.delete(duration)
      else if (next === undefined || first.atMs < next) next = first.atMs
    }
    return next
  }

  /** Takes out those that are due. */
  *due(nowMs: number): Generator<() => void> {
    for (const queue of this.#queues.values()) {
      for (const deadline of queue) {
        if (deadline.atMs > nowMs) break
        queue.delete(deadline)
        yield deadline.call
      }
    }
  }
}
