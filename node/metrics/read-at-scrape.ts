import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client'

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
