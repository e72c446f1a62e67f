import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { globalv1, type Log, localv1 } from '@kpng/api'
import type { View, Watch } from '../../view/index.js'
import type { ApiCounters, NodeWatcher, WatcherKind } from './counters.js'
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
    let listed: ListedWatcher | undefined
    // Also when the handler returns: the call is over then.
    const over = () => {
      watch?.close(call.signal.reason)
      listed?.leave()
    }
    call.signal.addEventListener('abort', over, { once: true })
    for await (const request of requestsOf(call, localv1.WatchReqSchema)) {
      if (!watch || !asked || asked.nodeName !== request.nodeName || !sameSets(asked.extraSets, request.extraSets)) {
        log.detail(1, 'Watch', { peer: call.peer.address, node: request.nodeName })
        watch?.close()
        listed?.leave()
        watch = view.watchNode(request)
        listed = new ListedWatcher(watch, request.nodeName, settings.counters)
        asked = request
      }
      listed?.asks()
      await sendNext(call, watch, settings, request.timeline, listed)
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

/** A watcher in the list of those of its node. */
class ListedWatcher implements NodeWatcher {
  busySinceMs: number | undefined
  readonly #watch: Watch
  readonly #node: string
  readonly #counters: ApiCounters
  /** What it had when it asked last. */
  #revision = 0

  constructor(watch: Watch, node: string, counters: ApiCounters) {
    this.#watch = watch
    this.#node = node
    this.#counters = counters
    counters.nodes.set(node, (counters.nodes.get(node) ?? new Set()).add(this))
  }

  /** While it waits, changes that do not concern it pass by. */
  get revision(): number {
    return this.busySinceMs === undefined ? this.#watch.revision : this.#revision
  }

  asks(): void {
    this.busySinceMs = undefined
    this.#revision = this.#watch.revision
  }

  isSent(): void {
    this.busySinceMs = Date.now()
  }

  leave(): void {
    const watchers = this.#counters.nodes.get(this.#node)
    watchers?.delete(this)
    if (watchers?.size === 0) this.#counters.nodes.delete(this.#node)
  }
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

async function sendNext(
  call: Call,
  watch: Watch,
  settings: WatchSettings,
  withTimeline = false,
  listed?: ListedWatcher,
): Promise<void> {
  const { view, frames, counters, onSent } = settings
  let sent = 0
  const changeSet = await watch.next()
  listed?.isSent()
  for (const { bytes, items } of frames.of(changeSet, withTimeline)) {
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
