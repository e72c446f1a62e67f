import { families as allFamilies, type Family } from '@kpng/api'
import type { SourceReport } from './source-report.js'

export interface ProxyHealthOptions {
  /** How old a queued change may become: kube-proxy's 2 × syncPeriod. */
  readonly timeoutMs: number
  /** The families that are served, for the answer's `status`. Default both. */
  readonly families?: readonly Family[]
  /** How up to date the state is, for the answer's `source`. Default: nothing is said of it. */
  readonly source?: () => SourceReport | undefined
  /** Unix time in milliseconds, for what is reported. Default Date.now. */
  readonly now?: () => number
  /** Monotonic time in milliseconds: what waits too long is late by it. Default performance.now. */
  readonly monotonicNow?: () => number
}

export type HealthPage = 'healthz' | 'livez' | 'readyz'

/** What kube-proxy (1.33 and later) says of its health, in the order in which it says it; then what kpng adds. */
export interface HealthStatus {
  readonly lastUpdated: string
  readonly currentTime: string
  /** Only of /healthz. */
  readonly nodeEligible?: boolean
  readonly healthy: boolean
  readonly status: { readonly [family: string]: { readonly lastUpdated: string; readonly healthy: boolean } }
  /** Missing if the source watches nothing, such as a file. */
  readonly source?: SourceReport
}

/**
 * Whether the rules keep up. Healthy while nothing is queued or what is queued is not late yet; being idle for long is healthy. It
 * counts as synced when it is made, so that a proxy that never syncs is found out.
 */
export class ProxyHealth {
  readonly #timeoutMs: number
  readonly #families: readonly Family[]
  readonly #source: () => SourceReport | undefined
  readonly #now: () => number
  readonly #monotonicNow: () => number
  #lastUpdated: number
  #oldestQueued: number | undefined
  #nodeEligible = true
  #everSynced = false

  constructor(options: ProxyHealthOptions) {
    this.#timeoutMs = options.timeoutMs
    this.#families = options.families ?? allFamilies
    this.#source = options.source ?? (() => undefined)
    this.#now = options.now ?? Date.now
    this.#monotonicNow = options.monotonicNow ?? (() => performance.now())
    this.#lastUpdated = this.#now()
  }

  /** Something has waited for a sync for this many milliseconds. Only the longest wait counts. */
  queued(agoMs = 0): void {
    this.#oldestQueued ??= this.#monotonicNow() - agoMs
  }

  /** Everything that was queued is synced. */
  synced(): void {
    this.#oldestQueued = undefined
    this.#lastUpdated = this.#now()
    this.#everSynced = true
  }

  /** False while the node is being deleted: load balancers should leave it, though its proxy works. */
  setNodeEligible(eligible: boolean): void {
    this.#nodeEligible = eligible
  }

  get nodeEligible(): boolean {
    return this.#nodeEligible
  }

  /** The proxy's own health, whatever becomes of the node. */
  get healthy(): boolean {
    return this.#oldestQueued === undefined || this.#monotonicNow() - this.#oldestQueued < this.#timeoutMs
  }

  /**
   * The answer to /livez; with `nodeEligible` also to /healthz. `ok` decides between 200 and 503. /readyz, which kube-proxy does not
   * have, is /livez that also waits for the first rules: only then may an earlier proxy's rules go. A stale source changes no answer to 503:
   * when the API server is away, all nodes are stale at once, and all of them still serve what they have.
   */
  report(page: HealthPage): { readonly ok: boolean; readonly status: HealthStatus } {
    const now = new Date(this.#now()).toISOString()
    const lastUpdated = new Date(this.#lastUpdated).toISOString()
    const { healthy } = this
    const ok = healthy && (page !== 'healthz' || this.#nodeEligible) && (page !== 'readyz' || this.#everSynced)
    const source = this.#source()
    const status = {
      // As in kube-proxy: recent whenever the answer is 200, since older releases counted syncs that had nothing to do.
      lastUpdated: ok ? now : lastUpdated,
      currentTime: now,
      ...(page === 'healthz' ? { nodeEligible: this.#nodeEligible } : {}),
      healthy,
      status: Object.fromEntries(this.#families.map((family) => [family, { lastUpdated, healthy }])),
      ...(source ? { source } : {}),
    }
    return { ok, status }
  }
}
