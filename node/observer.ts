import { families, type Log, messageOf, OncePerMinute } from '@kpng/api'
import type { Changes, SyncReport } from '@kpng/client'
import type { FrontendTable } from '@kpng/dataplane'
import { reachableAddresses } from '@kpng/linux'
import type { Activity } from './agent-api/index.js'
import type { HealthCheckNodePorts, ProxyHealth } from './health/index.js'
import type { ProxyMetrics } from './metrics/index.js'
import type { ServiceLog } from './service-log.js'

export interface NodeObserverOptions {
  readonly health: ProxyHealth
  readonly metrics: ProxyMetrics
  readonly healthCheckNodePorts: HealthCheckNodePorts
  readonly activity: Activity
  readonly services: ServiceLog
  /** What this node serves. The others read it too. */
  readonly frontends: FrontendTable
  /** Whether the observer keeps the table up to date, because the backend does not. */
  readonly keepsTable: boolean
  readonly log: Log
  /** Unix time in milliseconds. Default Date.now. */
  readonly now?: () => number
}

/** Watches the syncs of a runner, and tells health, metrics and health-check node ports. Its cost is that of what changed. */
export class NodeObserver {
  readonly #options: NodeObserverOptions
  readonly #now: () => number
  #nodeKnown = false
  #nodeMissing = false
  readonly #nodeWarnings: OncePerMinute

  constructor(options: NodeObserverOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#nodeWarnings = new OncePerMinute(this.#now)
  }

  /** New changes wait for a sync. A sync that hangs is found by them alone. */
  onQueued(changes: Changes): void {
    this.#options.health.queued()
    this.#options.metrics.recordQueued(changes)
    this.#options.activity.onQueued(changes)
  }

  /** The backend asked for a sync of everything, because another program changed the data plane. */
  onFullSyncRequested(reason: string): void {
    this.#options.activity.onDrift(reason)
  }

  /** A sync has ended: `RunnerOptions.onSync`. */
  onSync(report: SyncReport): void {
    const { health, metrics, activity, healthCheckNodePorts, frontends, keepsTable, log } = this.#options
    const { view, changes, durationMs, error } = report
    if (keepsTable && error === undefined) {
      frontends.apply(view, changes, { families, addresses: reachableAddresses() })
    }
    metrics.recordSync(report)
    activity.onSync(report)
    // A source without nodes says nothing about them; a node that was there and is not has been deleted.
    health.setNodeEligible(view.node ? !view.node.deleting : !this.#nodeKnown)
    this.#nodeKnown ||= view.node !== undefined
    this.#noteNode(view)
    if (error !== undefined) {
      health.queued(durationMs)
      return
    }
    health.synced()
    this.#options.services.note(changes)
    healthCheckNodePorts.observe(view, changes).catch((reason) => {
      log.error('The health-check node ports could not be brought up to date', { error: messageOf(reason) })
    })
  }

  /** Without its Node object a proxy works, but not as its operator expects. */
  #noteNode({ node, nodeName }: SyncReport['view']): void {
    if (!node) {
      this.#nodeMissing = true
      if (this.#nodeWarnings.times(nodeName) === undefined) return
      this.#options.log.warn(
        'There is no Node object of this name: the addresses of this machine are used instead, and its zone and pod CIDRs are unknown. If the cluster has a Node object for it, give its name with --node-name, NODE_NAME or hostnameOverride',
        { node: nodeName, addresses: this.#options.frontends.node.addresses },
      )
    } else if (this.#nodeMissing) {
      this.#options.log.info('The Node is there now', { node: nodeName })
      this.#nodeMissing = false
      this.#nodeWarnings.clear()
    }
  }
}
