import { families as allFamilies, type Family } from '@kpng/api'

export interface ProxyHealthOptions {
  /** How old a queued change may become: kube-proxy's 2 × syncPeriod. */
  readonly timeoutMs: number
  /** The families that are served, for the answer's `status`. Default both. */
  readonly families?: readonly Family[]
  /** Unix time in milliseconds. Default Date.now. */
  readonly now?: () => number
}

export type HealthPage = 'healthz' | 'livez' | 'readyz'

/** What kube-proxy (1.33 and later) says of its health, in the order in which it says it. */
export interface HealthStatus {
  readonly lastUpdated: string
  readonly currentTime: string
  /** Only of /healthz. */
  readonly nodeEligible?: boolean
  readonly healthy: boolean
  readonly status: { readonly [family: string]: { readonly lastUpdated: string; readonly healthy: boolean } }
}

/**
 * Whether the rules keep up. Healthy while nothing is queued or what is queued is not late yet; being idle for long is healthy. It
 * counts as synced when it is made, so that a proxy that never syncs is found out.
 */
export class ProxyHealth {
  readonly #timeoutMs: number
  readonly #families: readonly Family[]
  readonly #now: () => number
  #lastUpdated: number
  #oldestQueued: number | undefined
  #nodeEligible = true
  #everSynced = false

  constructor({ timeoutMs, families = allFamilies, now = Date.now }: ProxyHealthOptions) {
    this.#timeoutMs = timeoutMs
    this.#families = families
    this.#now = now
    this.#lastUpdated = now()
  }

  /** There is something to sync. Only the oldest counts. */
  queued(now = this.#now()): void {
    this.#oldestQueued ??= now
  }

  /** Everything that was queued is synced. */
  synced(now = this.#now()): void {
    this.#oldestQueued = undefined
    this.#lastUpdated = now
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
    return this.#oldestQueued === undefined || this.#now() - this.#oldestQueued < this.#timeoutMs
  }

  /**
   * The answer to /livez; with `nodeEligible` also to /healthz. `ok` decides between 200 and 503. /readyz, which kube-proxy does not
   * have, is /livez that also waits for the first rules: only then may an earlier proxy's rules go.
   */
  report(page: HealthPage): { readonly ok: boolean; readonly status: HealthStatus } {
    const now = new Date(this.#now()).toISOString()
    const lastUpdated = new Date(this.#lastUpdated).toISOString()
    const { healthy } = this
    const ok = healthy && (page !== 'healthz' || this.#nodeEligible) && (page !== 'readyz' || this.#everSynced)
    const status = {
      // As in kube-proxy: recent whenever the answer is 200, since older releases counted syncs that had nothing to do.
      lastUpdated: ok ? now : lastUpdated,
      currentTime: now,
      ...(page === 'healthz' ? { nodeEligible: this.#nodeEligible } : {}),
      healthy,
      status: Object.fromEntries(this.#families.map((family) => [family, { lastUpdated, healthy }])),
    }
    return { ok, status }
  }
}
