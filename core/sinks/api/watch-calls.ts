import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { globalv1, type Log, localv1 } from '@kpng/api'
import type { View, Watch } from '../../view/index.js'
import type { ApiCounters, WatcherKind } from './counters.js'
import { type Call, type Handler, RpcError, Status } from './grpc/index.js'
import type { ItemFrames } from './item-frames.js'

/** Told how many items each change set had that went out. */
export type OnSent = (items: number) => void

export interface WatchSettings {
  readonly view: View
  readonly frames: ItemFrames
  readonly log: Log
  readonly counters: ApiCounters
  readonly onSent: OnSent
}

/** `/localv1.Sets/Watch`: one change set per request, for the node that the request names. */
export function localWatchHandler(settings: WatchSettings): Handler {
  const { view, log } = settings
  return counted('local', settings.counters, async (call) => {
    let watch: Watch | undefined
    let asked: localv1.WatchReq | undefined
    // Also when the handler returns: the call is over then.
    call.signal.addEventListener('abort', () => watch?.close(call.signal.reason), { once: true })
    for await (const request of requestsOf(call, localv1.WatchReqSchema)) {
      if (!watch || !asked || asked.nodeName !== request.nodeName || !sameSets(asked.extraSets, request.extraSets)) {
        log.detail(1, 'Watch', { peer: call.peer.address, node: request.nodeName })
        watch?.close()
        watch = view.watchNode(request)
        asked = request
      }
      await sendNext(call, watch, settings, request.timeline)
    }
  })
}

/** `/globalv1.Sets/Watch`: the whole cluster, for relays. */
export function globalWatchHandler(settings: WatchSettings): Handler {
  const { view, log } = settings
  return counted('global', settings.counters, async (call) => {
    let watch: Watch | undefined
    call.signal.addEventListener('abort', () => watch?.close(call.signal.reason), { once: true })
    for await (const request of requestsOf(call, globalv1.GlobalWatchReqSchema)) {
      if (!watch) {
        log.detail(1, 'Watch of the global state', { peer: call.peer.address })
        watch = view.watchCluster(request)
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
  const { view, frames, counters, onSent } = settings
  let sent = 0
  for (const { bytes, items } of frames.of(await watch.next(), withTimeline)) {
    await call.write(bytes)
    sent += items
    // A write that need not wait resolves within this turn: without a break, a large state would be all that happens.
    if (view.turns.isOver) await view.turns.next()
  }
  counters.changeSetsSent++
  counters.itemsSent += sent
  onSent(sent)
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
