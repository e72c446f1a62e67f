import { type Log, messageOf } from '@kpng/api'
import type { Changes, SyncReport } from '@kpng/client'
import type { HealthCheckNodePorts, ProxyHealth } from './health/index.js'
import type { ProxyMetrics } from './metrics/index.js'

export interface NodeObserverOptions {
  readonly health: ProxyHealth
  readonly metrics: ProxyMetrics
  readonly healthCheckNodePorts: HealthCheckNodePorts
  readonly log: Log
  /** Unix time in milliseconds. Default Date.now. */
  readonly now?: () => number
}

const nodeWarningIntervalMs = 60_000

/** Looks on while a runner syncs, and tells health, metrics and health-check node ports. Costs what changed. */
export class NodeObserver {
  readonly #options: NodeObserverOptions
  readonly #now: () => number
  #nodeKnown = false
  #nodeMissing = false
  #nodeMissedAt = 0

  constructor(options: NodeObserverOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Changes wait for a sync: those that are new, not those that wait already. A sync that hangs is found out by them alone. */
  onQueued(changes: Changes): void {
    this.#options.health.queued(this.#now())
    this.#options.metrics.recordQueued(changes)
  }

  /** A sync has ended: `RunnerOptions.onSync`. */
  onSync(report: SyncReport): void {
    const { health, metrics, healthCheckNodePorts, log } = this.#options
    const { view, changes, durationMs, error } = report
    metrics.recordSync(report)
    // A source without nodes says nothing about them; a node that was there and is not has been deleted.
    health.setNodeEligible(view.node ? !view.node.deleting : !this.#nodeKnown)
    this.#nodeKnown ||= view.node !== undefined
    this.#noteNode(view)
    if (error !== undefined) {
      health.queued(this.#now() - durationMs)
      return
    }
    health.synced(this.#now())
    healthCheckNodePorts.observe(view, changes).catch((reason) => {
      log.error('The health-check node ports could not be brought up to date', { error: messageOf(reason) })
    })
  }

  /** Without its Node a proxy looks well and is not: it does not know which addresses and which endpoints are its own. */
  #noteNode({ node, nodeName }: SyncReport['view']): void {
    if (!node) {
      if (this.#nodeMissing && this.#now() - this.#nodeMissedAt < nodeWarningIntervalMs) return
      this.#nodeMissedAt = this.#now()
      this.#options.log.warn(
        'The cluster has no Node of this name: node ports are closed and no endpoint counts as local. Give the name of the Node object with --node-name, NODE_NAME or hostnameOverride',
        { node: nodeName },
      )
    } else if (this.#nodeMissing) this.#options.log.info('The Node is there now', { node: nodeName })
    this.#nodeMissing = !node
  }
}
