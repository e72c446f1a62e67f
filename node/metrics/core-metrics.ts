import { Gauge, Registry } from 'prom-client'
import { type Readings, registerBuildInfo, registerReadings } from './own-metrics.js'
import { readCounter, registerProcessMetrics } from './read-at-scrape.js'

/** What a core counts of those it serves. */
export interface CoreCounters {
  /** That are there now, by what they ask for: `local`, `global`. */
  readonly watchers: { readonly [kind: string]: number }
  /** Since the start. */
  readonly changeSetsSent: number
  readonly itemsSent: number
}

/** The metrics of a process that serves others and has no rules of its own. */
export function coreMetrics(version: string, readings: Readings, counters: CoreCounters): Registry {
  const registry = new Registry()
  registerBuildInfo(registry, version)
  registerReadings(registry, readings)
  new Gauge({
    name: 'kpng_watchers',
    help: 'Watchers that are served now: local are nodes, global are relays',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const [kind, count] of Object.entries(counters.watchers)) this.set({ kind }, count)
    },
  })
  const sent = 'sent to watchers: what changed is told to each of them that it concerns'
  readCounter(registry, 'kpng_change_sets_sent_total', `Change sets ${sent}`, () => counters.changeSetsSent)
  readCounter(registry, 'kpng_items_sent_total', `Items of change sets ${sent}`, () => counters.itemsSent)
  registerProcessMetrics(registry)
  return registry
}
