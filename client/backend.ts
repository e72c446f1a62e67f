import type { globalv1, localv1 } from '@kpng/api'
import type { Timeline, Trigger } from './change-set.js'

/** A service and the endpoints that this node should use for it. Never changed in place: a new object takes its place. */
export interface ServiceEndpoints {
  readonly service: localv1.Service
  /** In the order of their paths. */
  readonly endpoints: readonly localv1.Endpoint[]
}

/** Everything one node should do. */
export interface NodeView {
  readonly nodeName: string
  /** The node itself, where the source knows it. */
  readonly node: globalv1.Node | undefined
  /** By `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceEndpoints>
  /** The ranges that cluster IPs come from; empty when the source does not know. */
  readonly serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR>
}

/** A service before and after; undefined where it did not or does not exist. */
export interface ServiceChange {
  readonly before: ServiceEndpoints | undefined
  readonly after: ServiceEndpoints | undefined
}

/** What is new in a view since the last sync that succeeded. */
export interface Changes {
  /** Nothing is known of what the data plane holds: at the start, after a failed sync, on drift. Look at the whole view. */
  readonly full: boolean
  /** By `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceChange>
  readonly node: boolean
  readonly serviceCidrs: boolean
  readonly triggers: readonly Trigger[]
  /** How the changes came here, for tracing; missing when nobody knows. */
  readonly timeline?: Timeline
}

/** A part of a sync that took time: a transaction, a program that was run. */
export interface SyncStep {
  readonly name: string
  /** Unix times in milliseconds. */
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

/** What a backend may ask of its runner. */
export interface Runner {
  /** Asks for a sync with `changes.full`, for instance because somebody else changed the data plane. */
  requestFullSync(reason: string): void
}

/** Makes one node's data plane match one node's view. Everything around it (retry, pacing, metrics, tracing) is the runner's. */
export interface Backend {
  /** Checks the machine; the error says what is missing. */
  setup(runner: Runner): Promise<void>
  /**
   * Rejecting makes the runner try again, after a while and with `changes.full`.
   * @param steps given when the sync is traced: add what took time
   */
  sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void>
  /** Takes everything of ours away. Not called on exit: the data plane outlives the process. */
  cleanup(): Promise<void>
  /** Called when the run ends, for backends that carry traffic themselves: what cannot outlive the process is taken away. */
  close?(): Promise<void>
}
