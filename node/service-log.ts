import type { Log, ServiceAnswer } from '@kpng/api'
import type { Changes } from '@kpng/client'
import { selectionOf, whyNoneIsUsed } from '@kpng/diagnose'

export interface ServiceLogOptions {
  readonly log: Log
  /** What the core says about a Service. Default: it cannot be asked. */
  readonly serviceAnswer?: ((service: string) => Promise<ServiceAnswer | undefined>) | undefined
  /** Monotonic time in milliseconds. Default performance.now. */
  readonly nowMs?: () => number
}

/** The most warnings per minute: when a zone is lost, the first ones tell enough. */
const warningsPerMinute = 20

/** Names the Services that changed: at -v 2 each of them, and as a warning those that lost their last endpoint. */
export class ServiceLog {
  readonly #options: ServiceLogOptions
  readonly #nowMs: () => number
  #minuteBegan = Number.NEGATIVE_INFINITY
  #warnings = 0
  #unsaid = 0

  constructor(options: ServiceLogOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  note({ services, full }: Changes): void {
    // At the start everything is new, and nothing is news.
    if (full) return
    const { log } = this.#options
    for (const [service, { before, after }] of services) {
      const counts = { before: before?.endpoints.length, after: after?.endpoints.length }
      log.detail(2, 'A Service changed', { service, ...counts })
      if (before && after && before.endpoints.length > 0 && after.endpoints.length === 0) void this.#warn(service)
    }
  }

  async #warn(service: string): Promise<void> {
    const { log, serviceAnswer } = this.#options
    if (!this.#mayWarn()) return
    const answer = await serviceAnswer?.(service).catch(() => undefined)
    log.warn('A Service lost its last endpoint on this node', {
      service,
      reason: answer && whyNoneIsUsed(selectionOf(answer)),
    })
  }

  #mayWarn(): boolean {
    const now = this.#nowMs()
    if (now - this.#minuteBegan >= 60_000) {
      if (this.#unsaid > 0) {
        this.#options.log.warn('More Services lost their last endpoint in the last minute', { services: this.#unsaid })
      }
      this.#minuteBegan = now
      this.#warnings = 0
      this.#unsaid = 0
    }
    if (this.#warnings < warningsPerMinute) {
      this.#warnings++
      return true
    }
    this.#unsaid++
    return false
  }
}
