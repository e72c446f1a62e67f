import { KpngError, type LiveNode, type Log } from '@kpng/api'
import type { SyncReport } from '@kpng/client'
import type { FrontendTable } from '@kpng/dataplane'
import { Activity } from './activity.js'
import { type History, NodeLive, type NodeLiveOptions } from './node-live.js'
import type { ServiceFactsOf } from './service-facts.js'

export interface CoreLiveOptions {
  /** What happened to the state. */
  readonly history: History
  /** The nodes that are served, and those that could be. */
  readonly nodes: () => Iterable<LiveNode>
  /** What the core knows about a Service as a node sees it. An empty name: a node that nobody knows. */
  readonly factsOf: (nodeName: string) => ServiceFactsOf
  /**
   * Keeps a table of what a node is served up to date until the signal is aborted, and tells about each change. Throws if there is no
   * such node.
   */
  readonly follow: (nodeName: string, signal: AbortSignal, onSync: (report: SyncReport) => void) => FrontendTable
  /** The status of the core, with what a node is served if `asNode` is given. */
  readonly status: (asNode?: { readonly name: string } & Counts) => ReturnType<NodeLiveOptions['status']>
  readonly log?: Log | undefined
}

interface Counts {
  readonly services: number
  readonly endpoints: number
  readonly frontends: number
}

/** Each costs what a node costs the core, for as long as somebody looks at it. */
const maxFollowed = 20

/** The live pages of a core: that of the cluster, and those of its nodes as the nodes see it. A page that nobody reads costs nothing. */
export class CoreLive {
  readonly #options: CoreLiveOptions
  readonly #followed = new Map<string, { readonly live: NodeLive; readonly stop: AbortController }>()

  constructor(options: CoreLiveOptions) {
    this.#options = options
  }

  /** @param nodeName empty: the cluster */
  of(nodeName: string): NodeLive {
    const known = this.#followed.get(nodeName)
    if (known) return known.live
    if (this.#followed.size >= maxFollowed) {
      throw new KpngError(
        'unavailable',
        `This core follows ${maxFollowed} nodes for live pages already. Close some of them and wait for a minute.`,
      )
    }
    const { history, nodes, factsOf, follow, status, log } = this.#options
    const stop = new AbortController()
    const ofNode = factsOf(nodeName)
    const activity = new Activity(Date.now(), ofNode)
    const frontends = follow(nodeName, stop.signal, (report) => activity.onSync(report))
    const counts = () => ({
      services: activity.view?.services.size ?? 0,
      endpoints: activity.counts.endpoints,
      frontends: frontends.size,
    })
    const live = new NodeLive({
      ...{ activity, frontends, factsOf: ofNode, log },
      status: () => status(nodeName === '' ? undefined : { name: nodeName, ...counts() }),
      cluster: nodeName === '' ? { history, nodes } : undefined,
      onIdle: () => this.#end(nodeName),
    })
    this.#followed.set(nodeName, { live, stop })
    return live
  }

  close(): void {
    for (const nodeName of [...this.#followed.keys()]) this.#end(nodeName)
  }

  #end(nodeName: string): void {
    const followed = this.#followed.get(nodeName)
    this.#followed.delete(nodeName)
    followed?.live.close()
    followed?.stop.abort()
  }
}
