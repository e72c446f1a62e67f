import { type Family, families, type Log, messageOf } from '@kpng/api'
import { FollowUp } from './follow-up.js'
import type { FrontendTable } from './frontend-table.js'
import { type Flow, type FlowCheck, staleness } from './stale-flows.js'

/** Which flows are looked at. */
export interface FlowSelection {
  /** Only flows of this family. */
  readonly family: Family
  /** Only flows of this protocol. */
  readonly protocol: 'udp'
  /** Only flows to these ports. Missing: all. */
  readonly ports?: readonly number[]
}

export interface StaleFlowRemovalOptions {
  /** Knows which flows belong to which frontend. */
  readonly table: FrontendTable
  /** Deletes flows of the kernel and resolves with their number: `deleteFlows` of @kpng/linux. */
  readonly deleteFlows: (selection: FlowSelection, isStale: (flow: Flow) => boolean) => Promise<number>
  /** Flows of a family were looked for. */
  readonly onRemoved: (family: Family, durationMs: number, deleted: number) => void
  /** Where failures are logged. */
  readonly log: Log
}

interface Request {
  readonly checks: readonly FlowCheck[]
  /** How often this was tried before. */
  readonly looks: number
}

/** A packet that was on its way when the rules changed can create its flow after the first look, and a look can fail. */
const maxLooks = 3
const nextLookMs = 1000

/** Deletes the UDP flows of endpoints that no longer serve. The kernel's table may be long, so syncs do not wait for it. */
export class StaleFlowRemoval {
  readonly #options: StaleFlowRemovalOptions
  readonly #rounds = new FollowUp<Request, number>((requests) => this.#round(requests))
  #isClosed = false

  constructor(options: StaleFlowRemovalOptions) {
    this.#options = options
  }

  /** Call this when the data plane no longer uses the endpoints that are gone. Resolves with the number of deleted flows. */
  remove(checks: readonly FlowCheck[]): Promise<number> {
    return this.#rounds.ask({ checks, looks: 0 })
  }

  /** Stops. Resolves when a look in progress is done. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#rounds.settled()
  }

  async #round(requests: readonly Request[]): Promise<number> {
    if (this.#isClosed) return 0
    const { removed, failed } = await this.#look(requests)
    this.#lookAgain(requests.filter(({ looks }) => (failed ? looks < maxLooks : looks === 0)))
    return removed
  }

  #lookAgain(requests: readonly Request[]): void {
    if (requests.length === 0) return
    const again = () => {
      for (const { checks, looks } of requests) void this.#rounds.ask({ checks, looks: looks + 1 })
    }
    setTimeout(again, nextLookMs).unref()
  }

  /** A flow that could not be deleted is a warning, not a failed sync. */
  async #look(requests: readonly Request[]): Promise<{ removed: number; failed: boolean }> {
    const { table, deleteFlows, onRemoved, log } = this.#options
    const isFirst = requests.some(({ looks }) => looks === 0)
    const checks = requests.flatMap((request) => request.checks)
    let removed = 0
    try {
      for (const family of families) {
        const own = checks.filter((check) => check.family === family)
        if (own.length === 0) continue
        const startedMs = performance.now()
        const deleted = await deleteFlows(selectionOf(family, own), staleness(own, table))
        removed += deleted
        if (isFirst || deleted > 0) onRemoved(family, performance.now() - startedMs, deleted)
        if (deleted > 0) log.detail(2, 'Deleted stale UDP flows', { family, flows: deleted })
      }
    } catch (error) {
      const fields = { error: messageOf(error) }
      if (isFirst) log.warn('Cannot delete stale UDP flows; they end when their clients pause', fields)
      return { removed, failed: true }
    }
    return { removed, failed: false }
  }
}

/** A Service that has the whole address can have flows to any port. */
function selectionOf(family: Family, checks: readonly FlowCheck[]): FlowSelection {
  const ports = new Set(checks.map(({ port }) => port))
  return { family, protocol: 'udp', ...(ports.has(0) ? {} : { ports: [...ports] }) }
}
