import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client'

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
}

/** kpng's own metrics, from the numbers that there are. */
export function registerReadings(registry: Registry, readings: Readings): void {
  const counter = (name: string, help: string, read: (() => number) | undefined) => {
    if (read) readCounter(registry, name, help, read)
  }
  counter('kpng_k8s_api_events_total', 'Events received from the Kubernetes API', readings.apiEvents)
  counter('kpng_node_local_events_total', 'Services that changed for this node', readings.nodeLocalEvents)
  counter('kpng_skipped_objects_total', 'Objects or parts of them that could not be used', readings.skippedObjects)
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

// Metrics of numbers that others keep: they are read when somebody scrapes.

export function readCounter(registry: Registry, name: string, help: string, read: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset()
      this.inc(read())
    },
  })
}

export function readGauge(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read())
    },
  })
}

/** Gauges that are named like counters, which `promtool check metrics` refuses. Their parts by type are left. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** CPU, memory, file descriptors, event-loop lag and garbage collection of this process. */
export function registerProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)
}
