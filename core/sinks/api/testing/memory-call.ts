import { EventEmitter } from 'node:events'
import type { ClientDuplexStream } from '@grpc/grpc-js'
import type { Call } from '../grpc/index.js'

/** One call in memory: a server's handler on one side, a client's stream on the other. It can be cut, and it counts messages. */
export class MemoryCall extends EventEmitter implements Call {
  readonly path = '/localv1.Sets/Watch'
  readonly peer = { address: 'memory', subject: undefined }
  readonly #aborter = new AbortController()
  readonly #requests: Buffer[] = []
  #asks: (() => void) | undefined
  /** How many messages of the server still come through. */
  messagesLeft = Number.POSITIVE_INFINITY

  get signal(): AbortSignal {
    return this.#aborter.signal
  }

  /** The client's side. */
  get stream(): ClientDuplexStream<Uint8Array, Uint8Array> {
    return {
      on: this.on.bind(this),
      write: (bytes: Uint8Array) => this.ask(bytes),
      cancel: () => this.cancel(),
    } as unknown as ClientDuplexStream<Uint8Array, Uint8Array>
  }

  async nextRequest(): Promise<Buffer | undefined> {
    while (this.#requests.length === 0 && !this.signal.aborted) {
      await new Promise<void>((resolve) => (this.#asks = resolve))
    }
    if (this.signal.aborted) throw this.signal.reason
    return this.#requests.shift()
  }

  /** The server answers. */
  async write(framed: Buffer): Promise<void> {
    for (let at = 0; at < framed.length && !this.signal.aborted; ) {
      const end = at + 5 + framed.readUInt32BE(at + 1)
      if (this.messagesLeft-- <= 0) return this.cancel()
      this.emit('data', framed.subarray(at + 5, end))
      at = end
    }
  }

  /** The client asks. */
  ask(request: Uint8Array): void {
    this.emit('asked', request)
    this.#requests.push(Buffer.from(request))
    this.#asks?.()
  }

  cancel(): void {
    if (this.signal.aborted) return
    this.#aborter.abort(new Error('The connection is lost'))
    this.#asks?.()
    this.emit('error', new Error('The connection is lost'))
  }
}
