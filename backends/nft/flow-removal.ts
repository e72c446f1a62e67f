import { messageOf } from '@kpng/api'
import { deleteFlows, type Libc } from '@kpng/linux'
import type { Family } from './address.js'
import { families } from './address.js'
import type { DesiredState } from './desired-state.js'
import { FollowUp } from './follow-up.js'
import type { NftHooks } from './hooks.js'
import type { Settings } from './options.js'
import { deleteFlowsByCommand, flowInBytes, type ListChange, portOfKey, staleness } from './stale-flows.js'

export interface FlowRemovalOptions {
  /** Undefined where the kernel cannot be asked directly. */
  readonly libc: Libc | undefined
  readonly state: DesiredState
  readonly settings: Settings
  readonly onRemoved: NonNullable<NftHooks['onStaleFlows']>
}

interface Request {
  readonly changes: readonly ListChange[]
  readonly ownAddresses: readonly string[]
  /** How often these were looked for before. */
  readonly looks: number
}

/** A packet that was on its way when the rules changed makes its flow after the first look; and a look may fail. */
const maxLooks = 3
const nextLookMs = 1000

/** What is left to look for. Those inside may have drawn again what only askers from outside lost, rightly so: that counts once. */
const later = (request: Request): Request => ({
  ...request,
  changes: request.changes.filter(({ onlyOutside }) => !onlyOutside),
})

/** Deletes the UDP flows of endpoints that no longer serve. The table of connections may be long; syncs go on meanwhile. */
export class FlowRemoval {
  readonly #options: FlowRemovalOptions
  readonly #rounds = new FollowUp<Request, number>((requests) => this.#round(requests))

  constructor(options: FlowRemovalOptions) {
    this.#options = options
  }

  /** To be called when the kernel no longer gives anybody the endpoints that went. Resolves with the number of flows. */
  remove(changes: readonly ListChange[], ownAddresses: readonly string[]): Promise<number> {
    return this.#rounds.ask({ changes, ownAddresses, looks: 0 })
  }

  async #round(requests: readonly Request[]): Promise<number> {
    const { removed, failed } = await this.#look(requests)
    this.#lookAgain(
      failed
        ? requests.filter(({ looks }) => looks < maxLooks)
        : requests.filter(({ looks }) => looks === 0).map(later),
    )
    return removed
  }

  #lookAgain(requests: readonly Request[]): void {
    if (requests.every(({ changes }) => changes.length === 0)) return
    const again = () => {
      for (const request of requests) void this.#rounds.ask({ ...request, looks: request.looks + 1 })
    }
    setTimeout(again, nextLookMs).unref()
  }

  /** A flow that stays where it should not is worth a warning, not a failed sync. */
  async #look(requests: readonly Request[]): Promise<{ removed: number; failed: boolean }> {
    const isFirst = requests.some(({ looks }) => looks === 0)
    const changes = requests.flatMap((request) => request.changes)
    const { state, settings, onRemoved } = this.#options
    const isStale = staleness(changes, state, requests.at(-1)?.ownAddresses ?? [])
    let removed = 0
    try {
      for (const family of families) {
        const own = changes.filter((change) => change.family === family)
        if (own.length === 0) continue
        const startedMs = performance.now()
        const count = await this.#removeIn(family, own, isStale)
        removed += count
        if (isFirst || count > 0) onRemoved(family, performance.now() - startedMs, count)
        if (count > 0) settings.log.detail(2, 'Deleted stale UDP flows', { family, flows: count })
      }
    } catch (error) {
      settings.log.warn('Stale UDP flows could not be deleted; they end by themselves when their clients pause', {
        error: messageOf(error),
      })
      return { removed, failed: true }
    }
    return { removed, failed: false }
  }

  #removeIn(family: Family, changes: readonly ListChange[], isStale: ReturnType<typeof staleness>): Promise<number> {
    const { libc, settings } = this.#options
    if (!libc) return deleteFlowsByCommand(settings.conntrackCommand, changes)
    const ports = changes.map(({ key }) => portOfKey(key))
    const selection = { family: family === 'ip' ? 'IPv4' : 'IPv6', protocol: 'udp', ports } as const
    return deleteFlows(selection, (flow) => isStale(flowInBytes(flow)))
  }
}
