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
  /** Nodes without a watcher that had one: when the last one left, as Unix time in milliseconds. At most 10,000, the newest. */
  readonly left: Map<string, number>
  /** Since the start. */
  changeSetsSent: number
  /** Things that were told to have come, changed or gone, since the start. */
  itemsSent: number
}

/** A client chooses the name of its node, so that there could be any number. */
const maxLeft = 10_000

export function noteLeft({ left }: Pick<ApiCounters, 'left'>, node: string, nowMs = Date.now()): void {
  left.delete(node)
  left.set(node, nowMs)
  const [oldest] = left.keys()
  if (oldest !== undefined && left.size > maxLeft) left.delete(oldest)
}

export const noApiCounts = (): ApiCounters => ({
  watchers: { local: 0, global: 0 },
  nodes: new Map(),
  left: new Map(),
  changeSetsSent: 0,
  itemsSent: 0,
})
