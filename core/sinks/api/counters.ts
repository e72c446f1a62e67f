/** What asks: a node (localv1), or a relay (globalv1). */
export type WatcherKind = 'local' | 'global'

/** Counted while the sink serves. Plain fields: read them whenever you like. */
export interface ApiCounters {
  /** That are there now. */
  readonly watchers: Record<WatcherKind, number>
  /** Since the start. */
  changeSetsSent: number
  /** Things that were told to have come, changed or gone, since the start. */
  itemsSent: number
}

export const noApiCounts = (): ApiCounters => ({ watchers: { local: 0, global: 0 }, changeSetsSent: 0, itemsSent: 0 })
