import type { AgentStatus, Explanation, LiveNode, LiveSync, Log } from '@kpng/api'
import type { Changes } from '@kpng/client'
import type { FrontendTable } from '@kpng/dataplane'
import type { Activity } from './activity.js'
import type { LiveSource } from './live-state.js'
import { LiveStream } from './live-stream.js'
import { liveRow, type RowSource } from './rows.js'
import { Samples } from './samples.js'
import type { ServiceFactsOf } from './service-facts.js'

export interface NodeLiveOptions {
  readonly activity: Activity
  readonly frontends: FrontendTable
  readonly status: () => AgentStatus
  /** What the core knows about a Service, if it is in this process. */
  readonly factsOf?: ServiceFactsOf | undefined
  /** Of the data plane. Default: everything. */
  readonly features?: (() => RowSource['features']) | undefined
  /** Counts the connections that the data plane carries itself, if it does. */
  readonly connections?: (() => number) | undefined
  readonly log?: Log | undefined
  /** Of the overview of a core, which has no node: what happened to the store, and the nodes. Default: the syncs of the activity. */
  readonly cluster?: { readonly history: History; readonly nodes: () => Iterable<LiveNode> } | undefined
  /** Called when the last reader left a minute ago. */
  readonly onIdle?: (() => void) | undefined
}

/** What happened so far. */
export interface History {
  /** The oldest first. */
  readonly syncs: readonly LiveSync[]
  /** Undefined: none since the start. */
  lastChangeOf(service: string): LiveSync | undefined
  /** Returns the function that ends it. */
  onChange(listener: (sync: LiveSync) => void): () => void
}

const sampleIntervalMs = 1000

/** The live page of one node: what its agent did and serves, as a stream. */
export class NodeLive {
  readonly stream: LiveStream
  readonly #samples: Samples
  readonly #activity: Activity
  /** Services for which the data plane was found not to hold what it should, and when a sync repaired it; Infinity: not yet. */
  readonly #differing = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  readonly #leave: readonly (() => void)[]

  constructor(options: NodeLiveOptions) {
    const { activity, frontends, factsOf, status, cluster } = options
    const history: History = cluster?.history ?? activity
    this.#activity = activity
    const rows: RowSource = {
      table: frontends,
      factsOf,
      ofCluster: cluster !== undefined,
      features: options.features?.(),
    }
    this.#samples = new Samples(options.connections)
    const source: LiveSource = {
      status,
      services: () => activity.view?.services.keys() ?? [],
      service: (path) => {
        const item = activity.view?.services.get(path)
        if (!item) return undefined
        return liveRow(path, item, rows, {
          lastChange: history.lastChangeOf(path),
          differs: this.#differing.has(path),
        })
      },
      syncs: () => history.syncs,
      samples: () => this.#samples.list,
      contested: () => frontends.problems.keys(),
      ...(factsOf?.onChange ? { onChange: factsOf.onChange } : {}),
      ...(cluster ? { nodes: cluster.nodes } : {}),
    }
    this.stream = new LiveStream(source, options.log, options.onIdle)
    const leaveHistory = history.onChange((sync) => {
      this.#samples.onSync(sync)
      this.stream.noteSync(sync)
    })
    const leaveActivity = activity.onChange((sync, changes) => {
      if (sync.error === undefined) this.#synced(changes)
      if (changes.full || changes.node || changes.serviceCidrs) this.stream.noteAll()
      else this.stream.noteServices(changes.services.keys())
    })
    this.#leave = [leaveHistory, leaveActivity]
    this.#timer = setInterval(() => this.#tick(), sampleIntervalMs).unref()
  }

  /** An explanation read back what the data plane holds. */
  onExplained({ frontends }: Explanation): void {
    const wrong = new Set(frontends.filter(({ held }) => held && !held.isRight).map(({ service }) => service))
    for (const { service, held } of frontends) {
      if (!held || wrong.has(service) === this.#differing.has(service)) continue
      if (wrong.has(service)) this.#differing.set(service, Number.POSITIVE_INFINITY)
      else this.#differing.delete(service)
      this.stream.noteServices([service])
    }
  }

  /** A sync repaired what another program had done to these Services. That is shown for a second: nobody could see it otherwise. */
  onRepaired(services: readonly string[]): void {
    this.#activity.onRepaired(services)
    for (const service of services) this.#differing.set(service, performance.now())
    this.stream.noteServices(services)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const leave of this.#leave) leave()
    this.stream.close()
  }

  /** What was written or compared is right again. */
  #synced({ full, services }: Changes): void {
    for (const [path, repairedAtMs] of this.#differing) {
      if (repairedAtMs === Number.POSITIVE_INFINITY && (full || services.has(path))) this.#differing.delete(path)
    }
  }

  #tick(): void {
    const sample = this.#samples.take()
    this.stream.pulse(sample)
    for (const [path, repairedAtMs] of this.#differing) {
      if (repairedAtMs > performance.now() - sampleIntervalMs) continue
      this.#differing.delete(path)
      this.stream.noteServices([path])
    }
  }
}
