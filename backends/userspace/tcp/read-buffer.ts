/** From what an idle connection may cost to what a download needs. */
const sizes = [2048, 16_384, 131_072] as const
const largest = sizes.length - 1

/** Large buffers that nobody uses, for the next download. More than this go to the garbage collector. */
const spare: Buffer[] = []
const maxSpare = 16

/** Small ones are pieces of Node's pool: an array buffer for each would cost more than it holds. */
const allocate = (size: number): Buffer => Buffer.allocUnsafe(sizes[size] as number)

/**
 * The memory that one connection reads into, again and again: allocating anew for each read is a third of the cost of moving
 * bytes. It grows with reads that fill it and shrinks with small ones. Two connections never share one: the system holds on to
 * the buffer that the *next* read will fill, so a write that is still under way elsewhere would be overwritten.
 */
export class ReadBuffer {
  #size = 0
  #buffer: Buffer | undefined

  /** Where the next read goes. */
  readonly next = (): Buffer => {
    this.#buffer ??=
      this.#size === largest ? (spare.pop() ?? Buffer.allocUnsafeSlow(sizes[largest] as number)) : allocate(this.#size)
    return this.#buffer
  }

  /** So much was read and passed on. `inUse`: the bytes are still being written, so the next read goes elsewhere. */
  passedOn(length: number, inUse: boolean): void {
    const size = this.#fit(length)
    if (!inUse && size === this.#size) return
    if (!inUse) this.#keep()
    this.#buffer = undefined
    this.#size = size
  }

  #fit(length: number): number {
    if (length === sizes[this.#size]) return Math.min(this.#size + 1, largest)
    return length < sizes[0] ? 0 : this.#size
  }

  #keep(): void {
    if (this.#size === largest && this.#buffer && spare.length < maxSpare) spare.push(this.#buffer)
  }
}
