import { KpngError } from '@kpng/api'

const lineFeed = 10

/**
 * Cuts a stream of bytes into lines. Only the line under way is held, in the pieces it came in, so that one of several MB costs
 * one copy.
 */
export class LineSplitter {
  readonly #maxBytes: number
  #pieces: Buffer[] = []
  #size = 0

  /** @param maxBytes a longer line is an error: it is no object that an API server can hold. */
  constructor(maxBytes = 64 * 1024 * 1024) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of a line that has not ended yet. */
  get pending(): number {
    return this.#size
  }

  /** The lines that this chunk completes, without line feeds; empty ones are left out. */
  *push(chunk: Buffer): Generator<Buffer> {
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      const line = this.#complete(chunk.subarray(start, end))
      start = end + 1
      if (line.length > 0) yield line
    }
    if (start === chunk.length) return
    this.#pieces.push(start === 0 ? chunk : chunk.subarray(start))
    this.#size += chunk.length - start
    if (this.#size > this.#maxBytes) {
      throw new KpngError('invalid', `The API server sent a line of more than ${this.#maxBytes} bytes in a watch.`)
    }
  }

  #complete(rest: Buffer): Buffer {
    if (this.#pieces.length === 0) return rest
    const line = Buffer.concat([...this.#pieces, rest])
    this.#pieces = []
    this.#size = 0
    return line
  }
}
