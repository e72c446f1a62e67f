import type { Log } from '@kpng/api'

/** How often the counts are logged. */
const intervalMs = 60_000

/** Events from the API server, and changes for nodes. The metrics `kpng_k8s_api_events_total` and `kpng_node_local_events_total` show them. */
export class EventCounts {
  apiEvents = 0
  nodeLocalEvents = 0

  countApiEvents(count: number): void {
    this.apiEvents += count
  }

  countNodeLocalEvents(count: number): void {
    this.nodeLocalEvents += count
  }

  /** Logs the counts at `-v 2`, once a minute if they changed, until the signal is aborted. */
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
