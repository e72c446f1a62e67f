import { digestBytes, globalv1, localv1, nameProblem } from '@kpng/api'
import type { Watch } from '../../view/index.js'
import { type ApiCounters, type NodeWatcher, noteLeft, type WatcherKind } from './counters.js'
import { type Handler, RpcError, Status } from './grpc/index.js'
import { Watching, WatchRequests, type WatchSettings } from './watching.js'

/** `/localv1.Sets/Watch`: one change set per request, for the node that the request names. */
export function localWatchHandler(settings: WatchSettings): Handler {
  const { nodeItems, log, counters } = settings
  return counted('local', counters, async (call) => {
    let watching: Watching | undefined
    let asked: WatchOf | undefined
    let listed: ListedWatcher | undefined
    // Also when the handler returns: the call is over then.
    const over = () => {
      watching?.close()
      listed?.leave()
    }
    call.signal.addEventListener('abort', over, { once: true })
    const isSent = () => listed?.isSent()
    const requests = new WatchRequests(call, localv1.WatchReqSchema)
    for (let bytes = await call.nextRequest(); bytes; bytes = await call.nextRequest()) {
      const request = requests.decode(bytes)
      const { nodeName, extraSets, timeline } = request
      if (!watching || !asked || !isSameWatch(asked, request)) {
        checkNodeName(nodeName)
        const known = digestIn(request)
        log.detail(1, 'Watch', { peer: call.peer.address, node: nodeName })
        over()
        watching = new Watching(settings, requests, nodeItems.watch({ nodeName, extraSets }), known)
        listed = new ListedWatcher(watching.watch, nodeName, counters)
      }
      // The first request may be large: it is not kept.
      asked = request.known ? { nodeName, extraSets } : request
      listed?.asks()
      await watching.sendNext(timeline, isSent)
    }
  })
}

/** `/globalv1.Sets/Watch`: the whole cluster, for relays. */
export function globalWatchHandler(settings: WatchSettings): Handler {
  const { clusterItems, log } = settings
  return counted('global', settings.counters, async (call) => {
    let watching: Watching | undefined
    call.signal.addEventListener('abort', () => watching?.close(), { once: true })
    const requests = new WatchRequests(call, globalv1.GlobalWatchReqSchema)
    for (let bytes = await call.nextRequest(); bytes; bytes = await call.nextRequest()) {
      const request = requests.decode(bytes)
      if (!watching) {
        const known = digestIn(request)
        log.detail(1, 'Watch of the global state', { peer: call.peer.address })
        watching = new Watching(settings, requests, clusterItems.watch({ extraSets: request.extraSets }), known)
      }
      await watching.sendNext()
    }
  })
}

/** Node names become part of log lines, metrics and pages. The empty one is a node that the cluster does not know. */
function checkNodeName(name: string): void {
  const problem = name === '' ? undefined : nameProblem(name)
  if (problem === undefined) return
  throw new RpcError(Status.INVALID_ARGUMENT, `The request names a node that cannot exist: ${problem} in the name`)
}

/** More than there are sets. */
const maxExtraSets = 16

/** What of a watch's first request is kept for as long as the stream is open: checked, and copied out of the request. Undefined if the client cannot resume. */
function digestIn({ known, extraSets }: Pick<localv1.WatchReq, 'known' | 'extraSets'>): Uint8Array | undefined {
  if (extraSets.length > maxExtraSets) {
    throw new RpcError(Status.INVALID_ARGUMENT, `The request asks for ${extraSets.length} sets, more than there are`)
  }
  if (!known) return undefined
  if (known.digest.length !== 0 && known.digest.length !== digestBytes) {
    throw new RpcError(Status.INVALID_ARGUMENT, `A digest has ${digestBytes} bytes, not ${known.digest.length}`)
  }
  return known.digest.slice()
}

/** A watcher in the list of those of its node. */
class ListedWatcher implements NodeWatcher {
  busySinceMs: number | undefined
  readonly #watch: Watch<unknown>
  readonly #node: string
  readonly #counters: ApiCounters
  /** What it had when it asked last. */
  #revision = 0

  constructor(watch: Watch<unknown>, node: string, counters: ApiCounters) {
    this.#watch = watch
    this.#node = node
    this.#counters = counters
    counters.left.delete(node)
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
    if (watchers?.size !== 0) return
    this.#counters.nodes.delete(this.#node)
    noteLeft(this.#counters, this.#node)
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

type WatchOf = Pick<localv1.WatchReq, 'nodeName' | 'extraSets'>

/** Nearly every request is the one before. */
const isSameWatch = (a: WatchOf, b: WatchOf): boolean =>
  a === b || (a.nodeName === b.nodeName && a.extraSets.join() === b.extraSets.join())
