import { messageOf } from '@kpng/api'
import type { ConnectionRecord, SyncReport } from '@kpng/client'

/** A span and those inside it, as plain data. Unix times in milliseconds. */
export interface SpanTree {
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly attributes?: Readonly<Record<string, string | number | boolean | string[]>>
  readonly error?: string
  readonly children?: readonly SpanTree[]
}

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

/** connection: accept, pick, connect, copy. */
export function connectionSpans(connection: ConnectionRecord): SpanTree {
  const { servicePort, client, endpoint, acceptedAtMs, pickedAtMs, connectedAtMs, endedAtMs, error } = connection
  const reached = endpoint === undefined ? {} : { 'kpng.endpoint': endpoint }
  return {
    name: 'connection',
    startMs: acceptedAtMs,
    endMs: endedAtMs,
    attributes: { 'kpng.service.port': servicePort, 'client.address': client, ...reached },
    ...(error === undefined ? {} : { error }),
    children: [
      { name: 'accept', startMs: acceptedAtMs, endMs: acceptedAtMs },
      { name: 'pick', startMs: acceptedAtMs, endMs: pickedAtMs, attributes: reached },
      {
        name: 'connect',
        startMs: pickedAtMs,
        endMs: connectedAtMs,
        ...(endpoint === undefined && error !== undefined ? { error } : {}),
      },
      ...(endpoint === undefined
        ? []
        : [
            {
              name: 'copy',
              startMs: connectedAtMs,
              endMs: endedAtMs,
              attributes: {
                'kpng.bytes.to_endpoint': connection.bytesToEndpoint,
                'kpng.bytes.to_client': connection.bytesToClient,
              },
            },
          ]),
    ],
  }
}
