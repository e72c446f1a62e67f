import { fromBinary } from '@bufbuild/protobuf'
import type { ClientDuplexStream } from '@grpc/grpc-js'
import { itemHash, KpngError, localv1 } from '@kpng/api'
import type { KnownState, Operations } from './known-state.js'

/** Encodes a request for a change set, which may say what the client has. */
export type WatchRequest = (known?: localv1.Known) => Uint8Array

/**
 * The largest change set that is accepted. The whole state of 250,000 endpoints has less than 100 MB. A server that never ends a change set
 * must not fill the memory of its clients.
 */
const defaultMaxChangeSetBytes = 512 << 20

/** What an item costs in memory beside its bytes. Many small ones would cost more than a few large ones. */
const bytesPerItem = 256

/**
 * One Watch call. Each `next` sends one request and resolves with the change set that answers it; it rejects when the call
 * ends, and from then on always. What the server sends is checked: a message that is not of the API ends the call.
 */
export class WatchCall {
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  readonly #request: WatchRequest
  readonly #known: KnownState
  readonly #maxChangeSetBytes: number
  #isFirst = true
  #reset = false
  #sets: localv1.Value[] = []
  #hashes: number[] = []
  #deletes: localv1.Ref[] = []
  /** Of this change set so far, also of what a Reset took back. */
  #bytes = 0
  #wasAskedForBuckets = false
  #waiting: { resolve: (operations: Operations) => void; reject: (error: unknown) => void } | undefined
  #ended: unknown
  #heard = false

  /** @param known what the client has; it is kept up to date */
  constructor(
    call: ClientDuplexStream<Uint8Array, Uint8Array>,
    request: WatchRequest,
    known: KnownState,
    maxChangeSetBytes = defaultMaxChangeSetBytes,
  ) {
    this.#call = call
    this.#request = request
    this.#known = known
    this.#maxChangeSetBytes = maxChangeSetBytes
    call.on('data', (bytes: Uint8Array) => this.#receive(bytes))
    call.on('error', (error) => this.#end(error))
    call.on('end', () => this.#end(new KpngError('unavailable', 'The server ended the stream.')))
  }

  next(): Promise<Operations> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended)
      this.#waiting = { resolve, reject }
      this.#call.write(this.#isFirst ? this.#request(this.#known.known) : this.#request())
    })
  }

  cancel(): void {
    this.#call.cancel()
  }

  /** Ends the call if the server has not sent anything yet. */
  giveUpUnlessHeard(): void {
    if (this.#heard) return
    this.#fail(
      new KpngError(
        'unavailable',
        'The server accepts the connection but sends nothing: it may not know the cluster yet.',
      ),
    )
  }

  #receive(bytes: Uint8Array): void {
    if (this.#ended !== undefined) return
    this.#heard = true
    try {
      this.#take(this.#decode(bytes), bytes)
    } catch (error) {
      this.#fail(error)
    }
  }

  #decode(bytes: Uint8Array): localv1.OpItem['op'] {
    try {
      return fromBinary(localv1.OpItemSchema, bytes).op
    } catch (cause) {
      throw new KpngError('invalid', 'The server sent a message that is not of the kpng API. Is it a kpng server?', {
        cause,
      })
    }
  }

  #take(op: localv1.OpItem['op'], bytes: Uint8Array): void {
    this.#bytes += bytes.length + bytesPerItem
    if (this.#bytes > this.#maxChangeSetBytes) {
      throw new KpngError(
        'invalid',
        `The server sent a change set of more than ${this.#maxChangeSetBytes} bytes without an end. Is it a kpng server?`,
      )
    }
    if (op.case === 'set') {
      this.#sets.push(op.value)
      this.#hashes.push(itemHash(bytes))
    } else if (op.case === 'delete') this.#deletes.push(op.value)
    else if (op.case === 'reset') this.#begin(true)
    else if (op.case === 'sync') this.#complete(op.value)
    else if (op.case === 'askBuckets') this.#sayBuckets(op.value.count)
  }

  /** The following items belong to a new change set. */
  #begin(reset: boolean): void {
    this.#reset = reset
    this.#sets = []
    this.#hashes = []
    this.#deletes = []
  }

  #sayBuckets(count: number): void {
    if (this.#wasAskedForBuckets || !this.#isFirst) {
      throw new KpngError('invalid', 'The server asks again and again for what this client has. Is it a kpng server?')
    }
    this.#wasAskedForBuckets = true
    this.#call.write(this.#request(this.#known.knownIn(count)))
  }

  #complete(sync: localv1.EmptyOp): void {
    const waiting = this.#waiting
    if (!waiting) {
      throw new KpngError('invalid', 'The server sent a change set that nobody asked for. Is it a kpng server?')
    }
    const received = { reset: this.#reset, sets: this.#sets, hashes: this.#hashes, deletes: this.#deletes, sync }
    const operations = this.#known.take(received, this.#isFirst)
    this.#isFirst = false
    this.#begin(false)
    this.#bytes = 0
    this.#waiting = undefined
    waiting.resolve(operations)
  }

  /** Ends the call from this side. */
  #fail(error: unknown): void {
    this.#end(error)
    this.#begin(false)
    this.#call.cancel()
  }

  #end(error: unknown): void {
    this.#ended ??= error
    this.#waiting?.reject(this.#ended)
    this.#waiting = undefined
  }
}
