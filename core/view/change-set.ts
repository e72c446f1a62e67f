import type { DeleteItem, SetItem } from './items.js'

/**
 * Items that are always told together. Where many watchers are told the same batch, whoever encodes it may keep the result in
 * `frames`: a state of 50,000 endpoints is then a few thousand buffers for each of them.
 */
export interface Batch {
  readonly items: Iterable<SetItem>
  readonly shared: boolean
  frames?: Buffer
}

/** A batch of its own, for one watcher. */
export const batchOf = (items: Iterable<SetItem>): Batch => ({ items, shared: false })

export function* itemsOf(batches: Iterable<Batch>): Generator<SetItem> {
  for (const batch of batches) yield* batch.items
}

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
  /** New and changed things, in batches. Made while it is walked when it is the whole state; may be walked again. */
  readonly batches: Iterable<Batch>
  /** The same, one by one. */
  readonly sets: Iterable<SetItem>
  readonly deletes: readonly DeleteItem[]
  readonly triggers: readonly Trigger[]
  /** Where the time went so far; not for the whole state. */
  readonly timeline?: Timeline
}

/** Unix times in milliseconds. Where several changes came together, those of the first. */
export interface Timeline {
  readonly revision: number
  /** The source had it; missing where the source does not say. */
  readonly receivedAtMs: number | undefined
  /** It was in the store. */
  readonly committedAtMs: number
  /** It was worked out for this node. */
  readonly viewedAtMs: number
}

/** A watcher: remembers only what it asked for and the revision it has. */
export interface Watch {
  /** The next change set, or undefined when there is nothing new. */
  poll(): ChangeSet | undefined
}
