import { messageOf } from '@kpng/api'
import type { SyncReport } from '@kpng/client'
import type { SpanTree } from './span-tree.js'

/** A trace names this many services; the others are only counted. */
const namedServices = 10

/**
 * A change, from the API server's event to the rule in the kernel:
 *
 *   service change
 *   ├─ source event      received → written to the store
 *   ├─ store revision    written → worked out for this node
 *   ├─ view              worked out → handed to the backend
 *   └─ sync              the backend makes the data plane match
 *      └─ transaction …  what the backend notes
 *
 * Without a timeline (the start, or a core that tells none) there is only the sync. A core on another machine has another clock:
 * what it says of later than the sync's start is taken as then.
 */
export function syncSpans({ changes, startedAtMs, durationMs, steps, error }: SyncReport): SpanTree {
  const endMs = startedAtMs + durationMs
  const services = [...changes.services.keys()]
  const attributes = {
    'kpng.services': services.slice(0, namedServices),
    'kpng.services.count': services.length,
    'kpng.full': changes.full,
    ...(changes.timeline ? { 'kpng.revision': changes.timeline.revision } : {}),
  }
  const failure = error === undefined ? {} : { error: messageOf(error) }
  const sync: SpanTree = {
    name: 'sync',
    startMs: startedAtMs,
    endMs,
    attributes,
    ...failure,
    children: steps.map((step) => ({
      name: step.name,
      startMs: step.startedAtMs,
      endMs: step.endedAtMs,
      attributes: step.attributes,
    })),
  }
  const { timeline } = changes
  if (!timeline) return sync
  const viewedAtMs = Math.min(timeline.viewedAtMs, startedAtMs)
  const committedAtMs = Math.min(timeline.committedAtMs, viewedAtMs)
  const receivedAtMs = Math.min(timeline.receivedAtMs ?? committedAtMs, committedAtMs)
  return {
    name: 'service change',
    startMs: receivedAtMs,
    endMs,
    attributes,
    ...failure,
    children: [
      { name: 'source event', startMs: receivedAtMs, endMs: committedAtMs },
      {
        name: 'store revision',
        startMs: committedAtMs,
        endMs: viewedAtMs,
        attributes: { 'kpng.revision': timeline.revision },
      },
      { name: 'view', startMs: viewedAtMs, endMs: startedAtMs },
      sync,
    ],
  }
}
