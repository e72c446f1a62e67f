import { RpcError, Status } from './status.js'

/** One byte "is it compressed", four bytes of length, big-endian. */
const headerBytes = 5

/**
 * A message as it goes on the wire. Made once, the result may be written to any number of calls, and several framed messages
 * may be concatenated and written as one.
 */
export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(headerBytes + message.byteLength)
  framed[0] = 0
  framed.writeUInt32BE(message.byteLength, 1)
  framed.set(message, headerBytes)
  return framed
}

/**
 * Cuts a stream of bytes back into messages. Bytes are kept as they came and cut only when somebody asks, so that what waits here
 * is never more than what was pushed.
 */
export class FrameReader {
  readonly #maxMessageBytes: number
  #chunks: Buffer[] = []
  #buffered = 0

  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#chunks.push(chunk)
    this.#buffered += chunk.length
  }

  /** Bytes that wait: whole messages and the start of one. */
  get buffered(): number {
    return this.#buffered
  }

  /** Whether `next` has an answer: a message, or an error that no further byte can mend. */
  get ready(): boolean {
    if (this.#buffered < headerBytes) return false
    const { compressed, length } = this.#header()
    return compressed || length > this.#maxMessageBytes || this.#buffered >= headerBytes + length
  }

  /** The next message, or undefined until more bytes come. Throws RpcError on a message that will not be taken. */
  next(): Buffer | undefined {
    if (this.#buffered < headerBytes) return undefined
    const { compressed, length } = this.#header()
    if (compressed) {
      throw new RpcError(
        Status.UNIMPLEMENTED,
        'A request message is compressed, which this server does not read: send it with grpc-encoding identity',
      )
    }
    if (length > this.#maxMessageBytes) {
      throw new RpcError(
        Status.RESOURCE_EXHAUSTED,
        `A request message has ${length} bytes, more than the ${this.#maxMessageBytes} that this server takes: send less at once`,
      )
    }
    if (this.#buffered < headerBytes + length) return undefined
    return this.#take(headerBytes + length).subarray(headerBytes)
  }

  #header(): { compressed: boolean; length: number } {
    const first = this.#first(headerBytes)
    return { compressed: first[0] !== 0, length: first.readUInt32BE(1) }
  }

  /** The oldest chunk, made long enough. Only a header that was cut in two costs a copy. */
  #first(bytes: number): Buffer {
    let [first] = this.#chunks
    if (first === undefined || first.length < bytes) {
      first = Buffer.concat(this.#chunks)
      this.#chunks = [first]
    }
    return first
  }

  #take(bytes: number): Buffer {
    const first = this.#first(bytes)
    if (first.length === bytes) this.#chunks.shift()
    else this.#chunks[0] = first.subarray(bytes)
    this.#buffered -= bytes
    return first.subarray(0, bytes)
  }
}
