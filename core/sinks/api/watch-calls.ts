import { setImmediate as nextTurn } from 'node:timers/promises'
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { globalv1, type Log, localv1 } from '@kpng/api'
import type { Store } from '../../store/index.js'
import { type ChangeSet, GlobalWatch, NodeWatch, nextChangeSet, type Watch } from '../../view/index.js'
import type { ApiCounters, WatcherKind } from './counters.js'
import { type Call, type Handler, RpcError, Status } from './grpc/index.js'
import { countFrames, type FrameOptions, framesOf } from './item-frames.js'

/** Told how many items each change set had that went out. */
export type OnSent = (items: number) => void

export interface WatchSettings {
  readonly store: Store
  readonly log: Log
  readonly counters: ApiCounters
  readonly onSent: OnSent
}

/** `/localv1.Sets/Watch`: one change set a request, for the node that the request names. */
export function localWatchHandler(settings: WatchSettings): Handler {
  const { store, log } = settings
  return counted('local', settings.counters, async (call) => {
    let watch: Watch | undefined
    let asked: localv1.WatchReq | undefined
    for await (const request of requestsOf(call, localv1.WatchReqSchema)) {
      if (!watch || !asked || asked.nodeName !== request.nodeName || !sameSets(asked.extraSets, request.extraSets)) {
        log.detail(1, 'Watch', { peer: call.peer.address, node: request.nodeName })
        watch = new NodeWatch(store, request)
        asked = request
      }
      await sendNext(call, watch, settings, request.timeline)
    }
  })
}

/** `/globalv1.Sets/Watch`: the whole cluster, for relays. */
export function globalWatchHandler(settings: WatchSettings): Handler {
  const { store, log } = settings
  return counted('global', settings.counters, async (call) => {
    let watch: Watch | undefined
    for await (const request of requestsOf(call, globalv1.GlobalWatchReqSchema)) {
      if (!watch) {
        log.detail(1, 'Watch of the global state', { peer: call.peer.address })
        watch = new GlobalWatch(store, request)
      }
      await sendNext(call, watch, settings)
    }
  })
}

const counted =
  (kind: WatcherKind, { watchers }: ApiCounters, handler: Handler): Handler =>
  async (call) => {
    watchers[kind]++
    try {
      await handler(call)
    } finally {
      watchers[kind]--
    }
  }

async function sendNext(call: Call, watch: Watch, settings: WatchSettings, withTimeline = false): Promise<void> {
  const { store, log, counters, onSent } = settings
  const items = await send(call, await nextChangeSet(store, watch, call.signal), { log, withTimeline })
  counters.changeSetsSent++
  counters.itemsSent += items
  onSent(items)
}

const sameSets = (a: readonly number[], b: readonly number[]) => a.join() === b.join()

/** The requests of a call, until the client has no more. */
async function* requestsOf<Desc extends DescMessage>(call: Call, schema: Desc): AsyncGenerator<MessageShape<Desc>> {
  for (;;) {
    const bytes = await call.nextRequest()
    if (bytes === undefined) return
    yield decode(schema, bytes)
  }
}

function decode<Desc extends DescMessage>(schema: Desc, bytes: Buffer): MessageShape<Desc> {
  try {
    return fromBinary(schema, bytes)
  } catch (error) {
    throw new RpcError(Status.INVALID_ARGUMENT, `The request is no ${schema.typeName}`, { cause: error })
  }
}

/** Small frames go out together, in pieces that are large enough to be cheap and small enough to wait for a slow reader. */
const pieceBytes = 64 * 1024
/** How long a piece of work may keep the others waiting. */
const turnMs = 10

/** Returns how many items went out; the reset before them and the sync after them are none. */
async function send(call: Call, changeSet: ChangeSet, options: FrameOptions): Promise<number> {
  let frames: Buffer[] = []
  let bytes = 0
  let count = changeSet.reset ? -2 : -1
  let turnEnds = performance.now() + turnMs
  for (const frame of framesOf(changeSet, options)) {
    frames.push(frame)
    bytes += frame.length
    count += countFrames(frame)
    if (bytes < pieceBytes) continue
    await call.write(Buffer.concat(frames, bytes))
    frames = []
    bytes = 0
    // A write that need not wait resolves within this turn: without a break, a large state would be all that happens.
    if (performance.now() < turnEnds) continue
    await nextTurn()
    turnEnds = performance.now() + turnMs
  }
  if (bytes > 0) await call.write(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames, bytes))
  return count
}
