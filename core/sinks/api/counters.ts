/** What asks: a node (localv1), or a relay (globalv1). */
export type WatcherKind = 'local' | 'global'

/** A watch of one node's view. */
export interface NodeWatcher {
  /** The revision of the store that the node has taken over: it asked for the next one after it. */
  readonly revision: number
  /** When it was sent something that it has not taken over yet. Unix time in milliseconds. Undefined: it waits for the next change. */
  readonly busySinceMs: number | undefined
}

/** Counted while the sink serves. Plain fields: read them whenever you like. */
export interface ApiCounters {
  /** That are there now. */
  readonly watchers: Record<WatcherKind, number>
  /** Those of nodes, by the name of the node. */
  readonly nodes: Map<string, Set<NodeWatcher>>
  /** Since the start. */
  changeSetsSent: number
  /** Things that were told to have come, changed or gone, since the start. */
  itemsSent: number
}

export const noApiCounts = (): ApiCounters => ({
  watchers: { local: 0, global: 0 },
  nodes: new Map(),
  changeSetsSent: 0,
  itemsSent: 0,
})
