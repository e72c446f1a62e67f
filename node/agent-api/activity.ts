import { messageOf, type ServiceChangeAnswer, type SyncAnswer } from '@kpng/api'
import type { NodeView, ServiceChange, SyncReport } from '@kpng/client'

/** How many syncs are kept. */
const kept = 500
/** How many Services of one sync are listed. */
const listed = 50

/** What this process did so far, for `kpng status`, `kpng get changes` and the live page. Its memory is bounded. */
export class Activity {
  readonly startedAtMs: number
  readonly #syncs: SyncAnswer[] = []
  readonly #listeners = new Set<(sync: SyncAnswer, view: NodeView) => void>()
  #view: NodeView | undefined
  #failed = 0
  #full = 0
  #count = 0

  constructor(startedAtMs = Date.now()) {
    this.startedAtMs = startedAtMs
  }

  /** To be called after each sync. */
  onSync(report: SyncReport): void {
    const { view, changes, startedAtMs, durationMs, error } = report
    this.#count++
    if (error !== undefined) this.#failed++
    else this.#view = view
    if (changes.full) this.#full++
    const firstTriggerMs = changes.triggers.reduce((first, { unixMs }) => Math.min(first, unixMs), Infinity)
    const services = [...changes.services]
    const sync: SyncAnswer = {
      number: this.#count,
      at: new Date(startedAtMs).toISOString(),
      durationMs,
      ...(firstTriggerMs < Infinity ? { latencyMs: startedAtMs + durationMs - firstTriggerMs } : {}),
      full: changes.full,
      services: services.slice(0, listed).map(([path, change]) => changeAnswer(path, change)),
      moreServices: Math.max(0, services.length - listed),
      ...(error === undefined ? {} : { error: messageOf(error) }),
    }
    this.#syncs.push(sync)
    if (this.#syncs.length > kept) this.#syncs.shift()
    for (const listener of this.#listeners) listener(sync, view)
  }

  /** As of the last sync that succeeded. */
  get view(): NodeView | undefined {
    return this.#view
  }

  /** The oldest first. */
  get syncs(): readonly SyncAnswer[] {
    return this.#syncs
  }

  get counts(): { readonly syncs: number; readonly failedSyncs: number; readonly fullSyncs: number } {
    return { syncs: this.#count, failedSyncs: this.#failed, fullSyncs: this.#full }
  }

  /** Returns the function that ends it. */
  onChange(listener: (sync: SyncAnswer, view: NodeView) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

const changeAnswer = (service: string, { before, after }: ServiceChange): ServiceChangeAnswer => ({
  service,
  ...(before ? { before: before.endpoints.length } : {}),
  ...(after ? { after: after.endpoints.length } : {}),
})
