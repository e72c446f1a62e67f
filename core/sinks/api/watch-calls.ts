import { globalv1, localv1 } from '@kpng/api'
import type { Watch } from '../../view/index.js'
import { type ApiCounters, type NodeWatcher, noteLeft, type WatcherKind } from './counters.js'
import type { Handler } from './grpc/index.js'
import { Watching, WatchRequests, type WatchSettings } from './watching.js'

/** `/localv1.Sets/Watch`: one change set per request, for the node that the request names. */
export function localWatchHandler(settings: WatchSettings): Handler {
  const { view, log, counters } = settings
  return counted('local', counters, async (call) => {
    let watching: Watching | undefined
    let asked: localv1.WatchReq | undefined
    let listed: ListedWatcher | undefined
    // Also when the handler returns: the call is over then.
    const over = () => {
      watching?.leave()
      listed?.leave()
    }
    call.signal.addEventListener('abort', over, { once: true })
    const isSent = () => listed?.isSent()
    const requests = new WatchRequests(call, localv1.WatchReqSchema)
    for (let bytes = await call.nextRequest(); bytes; bytes = await call.nextRequest()) {
      const request = requests.decode(bytes)
      const { nodeName, extraSets, known, timeline } = request
      if (!watching || !asked || !isSameWatch(asked, request)) {
        log.detail(1, 'Watch', { peer: call.peer.address, node: nodeName })
        over()
        const watcher = `${extraSets.join()} of node ${nodeName}`
        watching = new Watching(settings, requests, { watcher, known }, (from) =>
          view.watchNode({ nodeName, extraSets, from }),
        )
        listed = new ListedWatcher(watching.watch, nodeName, counters)
      }
      asked = request
      listed?.asks()
      await watching.sendNext(timeline, isSent)
    }
  })
}

/** `/globalv1.Sets/Watch`: the whole cluster, for relays. */
export function globalWatchHandler(settings: WatchSettings): Handler {
  const { view, log } = settings
  return counted('global', settings.counters, async (call) => {
    let watching: Watching | undefined
    call.signal.addEventListener('abort', () => watching?.leave(), { once: true })
    const requests = new WatchRequests(call, globalv1.GlobalWatchReqSchema)
    for (let bytes = await call.nextRequest(); bytes; bytes = await call.nextRequest()) {
      const { extraSets, known } = requests.decode(bytes)
      if (!watching) {
        log.detail(1, 'Watch of the global state', { peer: call.peer.address })
        const watcher = `${extraSets.join()} of the cluster`
        watching = new Watching(settings, requests, { watcher, known }, (from) =>
          view.watchCluster({ extraSets, from }),
        )
      }
      await watching.sendNext()
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

/** Nearly every request is the one before. */
const isSameWatch = (a: localv1.WatchReq, b: localv1.WatchReq): boolean =>
  a === b || (a.nodeName === b.nodeName && a.extraSets.join() === b.extraSets.join())
