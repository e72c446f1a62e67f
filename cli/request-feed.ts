import type { RequestReport } from '@kpng/core/sources/kube'

type Observer = (report: RequestReport) => void

/** Where nobody ever asks, no more than these are kept. */
const mostWaiting = 1000

/** Requests to the API server, for whoever counts them. The first are sent before he is there: they wait for him. */
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
