import type { SourceStatus } from '@kpng/client'
import { Gauge, type Registry } from 'prom-client'
import { readCounter, readGauge } from './read-at-scrape.js'
import { registerSource } from './source-metrics.js'

/** Numbers that others keep, read when somebody scrapes. What is left out has no metric. */
export interface Readings {
  /** Events that came in from the API server. */
  readonly apiEvents?: () => number
  /** Services that changed for this node. */
  readonly nodeLocalEvents?: () => number
  /** Objects, or parts of them, that could not be used. */
  readonly skippedObjects?: () => number
  /** The revision of the store. */
  readonly storeRevision?: () => number
  /** How up to date the state is. */
  readonly source?: SourceStatus
}

/** kpng's own metrics, from the numbers that there are. */
export function registerReadings(registry: Registry, readings: Readings): void {
  const counter = (name: string, help: string, read: (() => number) | undefined) => {
    if (read) readCounter(registry, name, help, read)
  }
  counter('kpng_k8s_api_events_total', 'Events received from the Kubernetes API', readings.apiEvents)
  counter('kpng_node_local_events_total', 'Services that changed for this node', readings.nodeLocalEvents)
  counter('kpng_skipped_objects_total', 'Objects or parts of them that could not be used', readings.skippedObjects)
  if (readings.source) registerSource(registry, readings.source)
  if (!readings.storeRevision) return
  const help = 'Revision of the store: one more with each change of the cluster that matters'
  readGauge(registry, 'kpng_store_revision', help, readings.storeRevision)
}

export function registerBuildInfo(registry: Registry, version: string): void {
  new Gauge({
    name: 'kpng_build_info',
    help: 'A metric with a constant value of 1, labeled by the version of kpng and of Node',
    labelNames: ['version', 'node_version'],
    registers: [registry],
  }).set({ version, node_version: process.version }, 1)
}
