import { create, fromBinary, type Message } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { type Log, localv1 } from '@kpng/api'
import type { View, Watch } from '../../view/index.js'
import type { ChangeSet } from './change-set.js'
import { ClusterItems } from './cluster-watch.js'
import type { ApiCounters } from './counters.js'
import { type Call, RpcError, Status } from './grpc/index.js'
import { ItemFrames } from './item-frames.js'
import { Joins } from './joins.js'
import { NodeItems } from './node-items.js'
import { Resuming } from './resuming.js'
import { frameOf } from './sync-frames.js'

/** Told how many items each change set had that went out. */
export type OnSent = (items: number) => void

export interface WatchSettings {
  readonly view: View
  readonly nodeItems: NodeItems
  readonly clusterItems: ClusterItems
  readonly frames: ItemFrames
  readonly resuming: Resuming
  readonly joins: Joins
  readonly log: Log
  readonly counters: ApiCounters
  readonly onSent: OnSent
}

/** What the watches of a server share. */
export function watchSettings(view: View, rest: Pick<WatchSettings, 'log' | 'counters' | 'onSent'>): WatchSettings {
  const frames = new ItemFrames(rest.log)
  const resuming = new Resuming({ view, frames })
  const [nodeItems, clusterItems] = [new NodeItems(view), new ClusterItems(view)]
  return { view, frames, resuming, nodeItems, clusterItems, joins: new Joins(), ...rest }
}

/** One watch of a call: sends change sets, and knows what the client has. */
export class Watching {
  readonly watch: Watch<ChangeSet>
  readonly #settings: WatchSettings
  readonly #requests: Pick<WatchRequests, 'call' | 'bucketsOf'>
  /** The digest of what the client has; undefined if it cannot resume. */
  readonly #known: Uint8Array | undefined
  #isFirst = true

  constructor(
    settings: WatchSettings,
    requests: Pick<WatchRequests, 'call' | 'bucketsOf'>,
    watch: Watch<ChangeSet>,
    known: Uint8Array | undefined,
  ) {
    this.#settings = settings
    this.#requests = requests
    this.watch = watch
    this.#known = known
  }

  /** Sends the next change set. Asking for it says that the client has the one before. */
  async sendNext(withTimeline = false, onReady = () => {}): Promise<void> {
    const { view, frames, resuming, joins, counters, onSent } = this.#settings
    const known = this.#known
    const next = await this.watch.next()
    const { changeSet, resumed } =
      known && this.#isFirst
        ? await resuming.difference(known, next, (count) => this.#askForBuckets(count))
        : { changeSet: next, resumed: undefined }
    const revision = known && next.revision
    onReady()
    const leave = changeSet.whole ? await joins.enter() : undefined
    try {
      let sent = 0
      for (const { bytes, items } of frames.of(changeSet, { withTimeline, revision, resumed })) {
        // A write that need not wait goes on within this turn: without a break, a large state would be all that happens.
        if (sent > 0 && view.turns.isOver) await view.turns.next()
        const room = this.#requests.call.write(bytes)
        if (room) await room
        sent += items
      }
      this.#isFirst = false
      counters.changeSetsSent++
      counters.itemsSent += sent
      onSent(sent)
    } finally {
      leave?.()
    }
  }

  /** The call is over. */
  close(): void {
    this.watch.close(this.#requests.call.signal.reason)
  }

  /** A few watchers at a time: each says 32 KiB, and thousands of such answers at once would take long to read, and memory. */
  async #askForBuckets(count: number): Promise<Uint8Array> {
    const leave = await this.#settings.joins.enter()
    try {
      return await this.#requests.bucketsOf(count)
    } finally {
      leave()
    }
  }
}

/** The requests of one Watch call, until the client has no more. */
export class WatchRequests<Request extends Message & { known?: localv1.Known | undefined } = localv1.WatchReq> {
  readonly call: Call
  readonly #schema: GenMessage<Request>
  #last: { readonly bytes: Buffer; readonly request: Request } | undefined

  constructor(call: Call, schema: GenMessage<Request>) {
    this.call = call
    this.#schema = schema
  }

  /** A request. Most are the same as the one before, and are not decoded again. */
  decode(bytes: Buffer): Request {
    if (this.#last?.bytes.equals(bytes)) return this.#last.request
    try {
      const request = fromBinary(this.#schema, bytes)
      this.#last = request.known ? undefined : { bytes: Buffer.from(bytes), request }
      return request
    } catch (error) {
      throw new RpcError(Status.INVALID_ARGUMENT, `The request is not a ${this.#schema.typeName}`, { cause: error })
    }
  }

  /** Asks the client for the digest of each of `count` buckets. Empty if it does not say. */
  async bucketsOf(count: number): Promise<Uint8Array> {
    await this.call.write(frameOf({ case: 'askBuckets', value: create(localv1.AskBucketsSchema, { count }) }))
    const bytes = await this.call.nextRequest()
    return (bytes && this.decode(bytes).known?.buckets) ?? new Uint8Array()
  }
}
