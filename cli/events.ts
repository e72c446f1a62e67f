import type { Log } from '@kpng/api'

/** How often the reduction is said. */
const intervalMs = 60_000

/**
 * What kpng takes in and what it gives out: the reduction between the two is what it is for. Named as the metrics of the same
 * name: `kpng_k8s_api_events_total`, `kpng_node_local_events_total`.
 */
export class EventCounts {
  apiEvents = 0
  nodeLocalEvents = 0

  countApiEvents(count: number): void {
    this.apiEvents += count
  }

  countNodeLocalEvents(count: number): void {
    this.nodeLocalEvents += count
  }

  /** Says the counts every minute in which there was traffic, at `-v 2`. Ends with the signal. */
  report(log: Log, signal: AbortSignal, everyMs = intervalMs): void {
    if (!log.shows(2)) return
    let said = 0
    const timer = setInterval(() => {
      const total = this.apiEvents + this.nodeLocalEvents
      if (total === said) return
      said = total
      log.detail(2, 'Events', {
        kpng_k8s_api_events_total: this.apiEvents,
        kpng_node_local_events_total: this.nodeLocalEvents,
      })
    }, everyMs)
    timer.unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }
}
