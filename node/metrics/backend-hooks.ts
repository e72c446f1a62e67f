import type { Family } from '@kpng/api'
import { registerConnections, type ServicePortConnections } from './connection-metrics.js'
import type { ProxyMetrics } from './proxy-metrics.js'
import { readGauge } from './read-at-scrape.js'

type KernelFamily = 'ip' | 'ip6'

/** What a backend tells of its own accord. Those of its hooks that exist, be they undefined, are set. */
export interface BackendHooks {
  onStaleFlows?: ((family: KernelFamily, durationMs: number, deleted: number) => void) | undefined
  onCleanupFailure?: ((families: readonly KernelFamily[]) => void) | undefined
  /** Asked at each scrape; undefined when the backend does not count. */
  readonly connectionCounts?: (() => Promise<readonly ServicePortConnections[]>) | undefined
  /** Asked at each scrape: why addresses that should be open are not, by their names. */
  failures?(): ReadonlyMap<string, string>
}

const ipFamilyOf = (family: KernelFamily): Family => (family === 'ip' ? 'IPv4' : 'IPv6')

/** Counts what a backend tells. */
export function countHooks(backend: object & BackendHooks, metrics: ProxyMetrics): void {
  if ('onStaleFlows' in backend) {
    backend.onStaleFlows = (family, durationMs, deleted) =>
      metrics.recordConntrack(ipFamilyOf(family), durationMs, deleted)
  }
  if ('onCleanupFailure' in backend) {
    backend.onCleanupFailure = (families) => metrics.recordCleanupFailure(families.map(ipFamilyOf))
  }
  if (backend.connectionCounts) registerConnections(metrics.registry, backend.connectionCounts)
  if (backend.failures) {
    const help = 'Addresses of services that could not be opened; the log says which, and why'
    readGauge(metrics.registry, 'kpng_userspace_portals_failed', help, () => backend.failures?.().size ?? 0)
  }
}
