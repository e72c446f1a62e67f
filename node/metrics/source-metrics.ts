import type { SourceStatus } from '@kpng/client'
import { Gauge, type Registry } from 'prom-client'
import { readGauge } from './read-at-scrape.js'

/** Whether each watch of the source is connected and when something last came, read when somebody scrapes. */
export function registerSource(registry: Registry, source: SourceStatus): void {
  const labelNames = ['resource'] as const
  const present = () => [...source.watches.values()].filter(({ isAbsent }) => !isAbsent)
  new Gauge({
    name: 'kpng_source_connected',
    help: 'Whether the watch of this resource, or of the core, is connected (1) or not (0)',
    labelNames,
    registers: [registry],
    collect() {
      this.reset()
      for (const { name, isConnected } of present()) this.set({ resource: name }, Number(isConnected))
    },
  })
  new Gauge({
    name: 'kpng_source_stale',
    help: 'Whether what this resource, or the core, brought is stale (1): no connection for a minute, or the core says so of itself',
    labelNames,
    registers: [registry],
    collect() {
      this.reset()
      for (const watch of present()) this.set({ resource: watch.name }, Number(watch.isStale()))
    },
  })
  new Gauge({
    name: 'kpng_source_last_event_timestamp_seconds',
    help: 'When the last event or bookmark of this resource, or the last message of the core, came',
    labelNames,
    registers: [registry],
    collect() {
      this.reset()
      for (const { name, heardAtMs } of present()) {
        if (heardAtMs === undefined) continue
        // Whole seconds: the two clocks differ by parts of a millisecond from scrape to scrape.
        this.set({ resource: name }, Math.round((Date.now() - (performance.now() - heardAtMs)) / 1000))
      }
    },
  })
  const { stateCache } = source
  if (!stateCache) return
  const help =
    'Whether the state that is served is that of the state cache (1), because the source has not answered yet'
  readGauge(registry, 'kpng_state_cache_in_use', help, () => Number(stateCache.savedAtMs !== undefined))
}
