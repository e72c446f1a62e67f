import { fromBinary } from '@bufbuild/protobuf'
import type { ClientDuplexStream } from '@grpc/grpc-js'
import { KpngError, localv1 } from '@kpng/api'

/** The operations of one change set, up to its Sync. */
export interface Operations {
  readonly reset: boolean
  readonly sets: readonly localv1.Value[]
  readonly deletes: readonly localv1.Ref[]
  readonly triggers: readonly localv1.Trigger[]
  readonly timeline: localv1.Timeline | undefined
}

/**
 * One Watch call. Each `next` sends one request and resolves with the change set that answers it; it rejects when the call
 * ends, and from then on always.
 */
export class WatchCall {
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  #reset = false
  #sets: localv1.Value[] = []
  #deletes: localv1.Ref[] = []
  #waiting: { resolve: (operations: Operations) => void; reject: (error: unknown) => void } | undefined
  #ended: unknown
  #heard = false

  constructor(call: ClientDuplexStream<Uint8Array, Uint8Array>) {
    this.#call = call
    call.on('data', (bytes: Uint8Array) => this.#receive(bytes))
    call.on('error', (error) => this.#end(error))
    call.on('end', () => this.#end(new KpngError('unavailable', 'The server ended the stream.')))
  }

  next(request: Uint8Array): Promise<Operations> {
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended)
      this.#waiting = { resolve, reject }
      this.#call.write(request)
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
    if (op.case === 'set') this.#sets.push(op.value)
    else if (op.case === 'delete') this.#deletes.push(op.value)
    else if (op.case === 'reset') {
      this.#reset = true
      this.#sets = []
      this.#deletes = []
    } else if (op.case === 'sync') this.#complete(op.value)
  }

  #complete({ triggers, timeline }: localv1.EmptyOp): void {
    const operations = { reset: this.#reset, sets: this.#sets, deletes: this.#deletes, triggers, timeline }
    this.#reset = false
    this.#sets = []
    this.#deletes = []
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
