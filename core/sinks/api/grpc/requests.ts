import type { Readable } from 'node:stream'
import { FrameReader } from './frames.js'
import { RpcError, Status } from './status.js'

/** Marks a promise as looked after: a rejection that nobody happens to await must not end the process. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/**
 * The request messages of one call, pulled one at a time. As long as one whole message waits the stream is paused, so a client
 * that sends without being asked fills its own HTTP/2 window and no more. A message that somebody waits for does not pause it: that is nearly every one, and
 * pausing and resuming costs more than reading it.
 */
export class Requests {
  readonly #stream: Readable
  readonly #reader: FrameReader
  #halfClosed = false
  #stopped: Error | undefined
  #waiting: { resolve(message: Buffer | undefined): void; reject(error: unknown): void } | undefined

  constructor(stream: Readable, maxMessageBytes: number) {
    this.#stream = stream
    this.#reader = new FrameReader(maxMessageBytes)
    stream.on('data', (chunk: Buffer) => {
      if (this.#stopped) return
      this.#reader.push(chunk)
      this.#answer()
      if (this.#reader.ready) this.#stream.pause()
    })
    stream.on('end', () => {
      this.#halfClosed = true
      this.#answer()
    })
  }

  /** The next message; undefined once the client has half-closed. Rejects when a message is bad, or the call is over. */
  next(): Promise<Buffer | undefined> {
    if (this.#stopped) return quiet(Promise.reject(this.#stopped))
    if (this.#waiting) {
      return quiet(Promise.reject(new Error('nextRequest was called again before the last one was answered')))
    }
    const next = new Promise<Buffer | undefined>((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
    this.#answer()
    if (this.#waiting && this.#stream.isPaused()) this.#stream.resume()
    return quiet(next)
  }

  /** The call is over: the waiting reader is told why, and what the client still sends is dropped. */
  stop(reason: Error): void {
    if (this.#stopped) return
    this.#stopped = reason
    this.#waiting?.reject(reason)
    this.#waiting = undefined
    // A stream with unread bytes never closes.
    this.#stream.resume()
  }

  #answer(): void {
    const waiting = this.#waiting
    if (!waiting || !(this.#reader.ready || this.#halfClosed)) return
    this.#waiting = undefined
    try {
      waiting.resolve(this.#take())
    } catch (error) {
      waiting.reject(error)
    }
  }

  #take(): Buffer | undefined {
    const message = this.#reader.next()
    if (message === undefined && this.#reader.buffered > 0) {
      throw new RpcError(Status.INTERNAL, 'The request ended in the middle of a message')
    }
    return message
  }
}
