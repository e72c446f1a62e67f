/** A map has no room. The message is for the log: the frontend stays with nftables. */
export class MapFull extends Error {
  readonly map: string

  constructor(map: string) {
    super(`The map ${map} is full.`)
    this.map = map
  }
}

const orderOf = (count: number): number => Math.ceil(Math.log2(Math.max(count, 1)))

/**
 * Hands out runs of numbers below a maximum. Runs are rounded up to powers of two and aligned to their size, so that two neighbours that
 * are free become one again (a buddy allocator). 0 is never handed out: it means "none".
 */
export class Runs {
  readonly #name: string
  /** The starts of the free runs, by the logarithm of their size. */
  readonly #free: Set<number>[]

  /** @param max a power of two */
  constructor(name: string, max: number) {
    this.#name = name
    this.#free = Array.from({ length: orderOf(max) + 1 }, () => new Set<number>())
    this.#free.at(-1)?.add(0)
    this.reserve(0, 1)
  }

  /** The first number of a run that has at least this length. Throws MapFull if there is none. */
  take(count: number): number {
    const order = orderOf(count)
    let from = order
    while (from < this.#free.length && this.#free[from]?.size === 0) from++
    const [start] = this.#free[from] ?? []
    if (start === undefined) throw new MapFull(this.#name)
    this.#free[from]?.delete(start)
    // The upper halves stay free.
    for (let half = from - 1; half >= order; half--) this.#free[half]?.add(start + 2 ** half)
    return start
  }

  /** Takes a run that is in use already. Returns false if a part of it is not free. */
  reserve(start: number, count: number): boolean {
    const order = orderOf(count)
    for (let from = order; from < this.#free.length; from++) {
      const whole = start - (start % 2 ** from)
      if (start % 2 ** order !== 0 || !this.#free[from]?.delete(whole)) continue
      for (let half = from - 1, at = whole; half >= order; half--) {
        const upper = at + 2 ** half
        this.#free[half]?.add(start >= upper ? at : upper)
        if (start >= upper) at = upper
      }
      return true
    }
    return false
  }

  /** @param count as it was given to `take` */
  give(start: number, count: number): void {
    let order = orderOf(count)
    let at = start
    for (; order < this.#free.length - 1; order++) {
      const size = 2 ** order
      const buddy = (at / size) % 2 === 0 ? at + size : at - size
      if (!this.#free[order]?.delete(buddy)) break
      at = Math.min(at, buddy)
    }
    this.#free[order]?.add(at)
  }

  /** How many numbers are free. */
  get free(): number {
    return this.#free.reduce((sum, starts, order) => sum + starts.size * 2 ** order, 0)
  }
}
