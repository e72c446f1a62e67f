import type { Observations } from '@kpng/client'
import { registerConnections } from './connection-metrics.js'
import type { ProxyMetrics } from './proxy-metrics.js'
import { readGauge } from './read-at-scrape.js'
import { registerTraffic } from './traffic-metrics.js'

/** Counts what a backend reports, and shows what it counts. */
export function countObservations(observations: Observations, metrics: ProxyMetrics): void {
  const { connections, traffic, failures } = observations
  observations.listener = {
    ...observations.listener,
    staleFlows: (family, durationMs, deleted) => metrics.recordConntrack(family, durationMs, deleted),
    cleanupFailed: (families) => metrics.recordCleanupFailure(families),
  }
  if (connections) registerConnections(metrics.registry, connections)
  if (traffic) registerTraffic(metrics.registry, traffic)
  if (failures) {
    const help = 'Addresses of services that could not be opened; the log says which, and why'
    readGauge(metrics.registry, 'kpng_userspace_portals_failed', help, () => failures().size)
  }
}
