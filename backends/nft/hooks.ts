import type { Family } from './address.js'
import type { ServicePortConnections } from './connection-totals.js'

/** For whoever counts what the backend does. The first two are to be set before the first sync. */
export interface NftHooks {
  /** Stale UDP flows of a family were looked for, and so many deleted. */
  onStaleFlows: ((family: Family, durationMs: number, deleted: number) => void) | undefined
  /** Clients of endpoints that went could not be released, however often it was tried. */
  onCleanupFailure: ((families: readonly Family[]) => void) | undefined
  /** New connections by service port, asked of the kernel each time; undefined unless the option `counters` is set. */
  readonly connectionCounts: (() => Promise<readonly ServicePortConnections[]>) | undefined
}
