import type { RequestReport } from '@kpng/core/sources/kube'

type Observer = (report: RequestReport) => void

/** Without an observer, at most this many reports are kept. */
const mostWaiting = 1000

/** Requests to the API server, for metrics. The first requests are sent before the observer exists, so they are kept for it. */
export class RequestFeed {
  #waiting: RequestReport[] = []
  #observer: Observer | undefined

  readonly report: Observer = (report) => {
    if (this.#observer) this.#observer(report)
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(report)
  }

  observe(observer: Observer): void {
    this.#observer = observer
    for (const report of this.#waiting) observer(report)
    this.#waiting = []
  }
}
