import type { DeleteItem, SetItem } from './items.js'

/** When the change of a service's endpoints began. */
export interface Trigger {
  /** `namespace/name` */
  readonly service: string
  readonly unixMs: number
}

/**
 * What one watcher is told at once. Applied in order (sets, then deletes) it takes the watcher from what it knew to the state
 * of `revision`, and never shows it an endpoint without its service.
 */
export interface ChangeSet {
  readonly revision: number
  /** The whole state follows; what was known before is void. */
  readonly reset: boolean
  /** New and changed things. Made while it is walked when it is the whole state; may be walked again. */
  readonly sets: Iterable<SetItem>
  readonly deletes: readonly DeleteItem[]
  readonly triggers: readonly Trigger[]
}

/** A watcher: remembers only what it asked for and the revision it has. */
export interface Watch {
  /** The next change set, or undefined when there is nothing new. */
  poll(): ChangeSet | undefined
}
