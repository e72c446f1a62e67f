import { families as allFamilies, type Family, ipsOf } from '@kpng/api'
import type { Changes, ServiceChange, SyncReport } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { Registry } from 'prom-client'
import { failureMetrics, type KubeProxyMetrics, kubeProxyMetrics, type MetricsMode } from './kube-proxy-metrics.js'
import { NoLocalEndpointsTotal, trafficPolicies } from './no-local-endpoints.js'
import { type Readings, registerBuildInfo, registerReadings } from './own-metrics.js'
import { registerProcessMetrics } from './read-at-scrape.js'

export interface ProxyMetricsOptions {
  /** Which failures there can be. */
  readonly mode: MetricsMode
  /** Of kpng. */
  readonly version: string
  /** The families that are served; each sync is one of each, as in kube-proxy. Default both. */
  readonly families?: readonly Family[]
  readonly readings?: Readings
  /** What this node serves; up to date at each `recordSync`. Default: nothing. */
  readonly frontends?: FrontendTable
  /** Unix time in milliseconds. Default Date.now. */
  readonly now?: () => number
  /** Whether the metrics of the process are added. Default true. */
  readonly processMetrics?: boolean
}

/** The metrics of one proxy, in a registry of its own. */
export class ProxyMetrics {
  readonly registry = new Registry()
  readonly #kubeProxy: KubeProxyMetrics
  readonly #failures: ReturnType<typeof failureMetrics>
  readonly #families: readonly Family[]
  readonly #now: () => number
  readonly #startedMs: number
  readonly #noLocalEndpoints: NoLocalEndpointsTotal
  #lastQueuedMs = 0

  constructor({ mode, version, families = allFamilies, now = Date.now, ...options }: ProxyMetricsOptions) {
    this.#families = families
    this.#now = now
    this.#startedMs = now()
    this.#kubeProxy = kubeProxyMetrics(this.registry)
    this.#noLocalEndpoints = new NoLocalEndpointsTotal(options.frontends ?? new FrontendTable())
    this.#failures = failureMetrics(this.registry, mode)
    registerBuildInfo(this.registry, version)
    registerReadings(this.registry, options.readings ?? {})
    if (options.processMetrics ?? true) registerProcessMetrics(this.registry)
    // From 0 on, so that the first failure is a step that `increase()` sees.
    for (const ip_family of families) {
      this.#failures.sync?.inc({ ip_family }, 0)
      this.#failures.cleanup?.inc({ ip_family }, 0)
      this.#failures.partialSync?.inc({ ip_family }, 0)
      this.#kubeProxy.conntrackDeleted.inc({ ip_family }, 0)
    }
  }

  /** Something changed and waits for a sync. */
  recordQueued(changes: Changes): void {
    const { services, endpoints } = countChanges(changes)
    this.#kubeProxy.serviceChangesPending.inc(services)
    this.#kubeProxy.endpointChangesPending.inc(endpoints)
    this.#setLastQueued(this.#now())
  }

  /** A sync has ended, well or not. */
  recordSync(report: SyncReport): void {
    const seconds = report.durationMs / 1000
    const byExtent = report.changes.full ? this.#kubeProxy.syncFullDuration : this.#kubeProxy.syncPartialDuration
    for (const ip_family of this.#families) {
      this.#kubeProxy.syncDuration.observe({ ip_family }, seconds)
      byExtent.observe({ ip_family }, seconds)
      if (report.error !== undefined) this.#failures.sync?.inc({ ip_family })
      if (report.error !== undefined && !report.changes.full) this.#failures.partialSync?.inc({ ip_family })
    }
    // Where nobody calls recordQueued: it was queued at the latest when the sync began.
    this.#setLastQueued(this.#now() - report.durationMs)
    if (report.error !== undefined) this.#recordPending(report.changes)
    else this.#recordSuccess(report)
  }

  /** What failed waits for the next try, which will report it again. */
  #recordPending(changes: Changes): void {
    const { services, endpoints } = countChanges(changes)
    this.#kubeProxy.serviceChangesPending.set(services)
    this.#kubeProxy.endpointChangesPending.set(endpoints)
  }

  #recordSuccess(report: SyncReport): void {
    const metrics = this.#kubeProxy
    const { services, endpoints } = countChanges(report.changes)
    metrics.serviceChanges.inc(services)
    metrics.endpointChanges.inc(endpoints)
    metrics.serviceChangesPending.set(0)
    metrics.endpointChangesPending.set(0)
    const nowMs = this.#now()
    for (const ip_family of this.#families) metrics.lastSynced.set({ ip_family }, nowMs / 1000)
    this.#recordProgramming(report, nowMs)
    this.#noLocalEndpoints.observe(report.view, report.changes)
    for (const ip_family of this.#families) {
      for (const traffic_policy of trafficPolicies) {
        const total = this.#noLocalEndpoints.total[`${traffic_policy}/${ip_family}`]
        metrics.noLocalEndpoints.set({ traffic_policy, ip_family }, total)
      }
    }
  }

  /** From the change in the cluster to the rule, by two clocks; what changed before we started says nothing about us. */
  #recordProgramming({ changes, view }: SyncReport, nowMs: number): void {
    for (const { service, unixMs } of changes.triggers) {
      if (unixMs <= this.#startedMs) continue
      const endpoints = view.services.get(service)?.endpoints ?? []
      const touched = this.#families.filter((family) => endpoints.some(({ ips }) => ipsOf(ips, family).length > 0))
      for (const ip_family of touched.length > 0 ? touched : this.#families.slice(0, 1)) {
        this.#kubeProxy.networkProgramming.observe({ ip_family }, Math.max(0, nowMs - unixMs) / 1000)
      }
    }
  }

  #setLastQueued(ms: number): void {
    if (ms <= this.#lastQueuedMs) return
    this.#lastQueuedMs = ms
    for (const ip_family of this.#families) this.#kubeProxy.lastQueued.set({ ip_family }, ms / 1000)
  }

  /** A health check was answered. */
  recordHealth(page: 'healthz' | 'livez', code: number): void {
    this.#kubeProxy[page].inc({ code: String(code) })
  }

  /** Rules that are no longer needed could not be removed. */
  recordCleanupFailure(families: readonly Family[] = this.#families): void {
    for (const ip_family of families) this.#failures.cleanup?.inc({ ip_family })
  }

  /** Stale flows were looked for and deleted. */
  recordConntrack(ip_family: Family, durationMs: number, deletedEntries: number): void {
    this.#kubeProxy.conntrackDuration.observe({ ip_family }, durationMs / 1000)
    this.#kubeProxy.conntrackDeleted.inc({ ip_family }, deletedEntries)
  }
}

/** How many services were added, changed or deleted, and of how many the endpoints changed. */
function countChanges(changes: Changes): { services: number; endpoints: number } {
  const all = [...changes.services.values()]
  return {
    services: all.filter(({ before, after }) => before?.service !== after?.service).length,
    endpoints: all.filter(endpointsDiffer).length,
  }
}

/** What is unchanged is the same object, so that nothing need be compared in depth. */
function endpointsDiffer({ before, after }: ServiceChange): boolean {
  const old = before?.endpoints ?? []
  const young = after?.endpoints ?? []
  return old.length !== young.length || old.some((endpoint, index) => endpoint !== young[index])
}
