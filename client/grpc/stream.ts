import { fromBinary } from '@bufbuild/protobuf'
import type { ClientDuplexStream } from '@grpc/grpc-js'
import { itemHash, KpngError, localv1 } from '@kpng/api'
import type { KnownState, Operations } from './known-state.js'

/** Encodes a request for a change set, which may say what the client has. */
export type WatchRequest = (known?: localv1.Known) => Uint8Array

/**
 * One Watch call. Each `next` sends one request and resolves with the change set that answers it; it rejects when the call
 * ends, and from then on always.
 */
export class WatchCall {
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  readonly #request: WatchRequest
  readonly #known: KnownState
  #isFirst = true
  #reset = false
  #sets: localv1.Value[] = []
  #hashes: number[] = []
  #deletes: localv1.Ref[] = []
  #waiting: { resolve: (operations: Operations) => void; reject: (error: unknown) => void } | undefined
  #ended: unknown
  #heard = false

  /** @param known what the client has; it is kept up to date */
  constructor(call: ClientDuplexStream<Uint8Array, Uint8Array>, request: WatchRequest, known: KnownState) {
    this.#call = call
    this.#request = request
    this.#known = known
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

  /** Ends the call when the server has not said a word yet. */
  giveUpUnlessHeard(): void {
    if (this.#heard) return
    this.#end(
      new KpngError(
        'unavailable',
        'The server takes the connection and says nothing: it may not know the cluster yet.',
      ),
    )
    this.#call.cancel()
  }

  #receive(bytes: Uint8Array): void {
    this.#heard = true
    let op: localv1.OpItem['op']
    try {
      op = fromBinary(localv1.OpItemSchema, bytes).op
    } catch (error) {
      this.#end(
        new KpngError('invalid', 'The server sent a message that is not of the kpng API. Is it a kpng server?', {
          cause: error,
        }),
      )
      this.#call.cancel()
      return
    }
    if (op.case === 'set') {
      this.#sets.push(op.value)
      this.#hashes.push(itemHash(bytes))
    } else if (op.case === 'delete') this.#deletes.push(op.value)
    else if (op.case === 'reset') this.#begin(true)
    else if (op.case === 'sync') this.#complete(op.value)
    else if (op.case === 'askBuckets') this.#call.write(this.#request(this.#known.knownIn(op.value.count)))
  }

  /** What comes now is of a new change set. */
  #begin(reset: boolean): void {
    this.#reset = reset
    this.#sets = []
    this.#hashes = []
    this.#deletes = []
  }

  #complete(sync: localv1.EmptyOp): void {
    const received = { reset: this.#reset, sets: this.#sets, hashes: this.#hashes, deletes: this.#deletes, sync }
    const operations = this.#known.take(received, this.#isFirst)
    this.#isFirst = false
    this.#begin(false)
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve(operations)
  }

  #end(error: unknown): void {
    this.#ended ??= error
    this.#waiting?.reject(this.#ended)
    this.#waiting = undefined
  }
}
