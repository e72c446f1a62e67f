import { KpngError, messageOf } from '@kpng/api'
import { LineSplitter } from './lines.js'
import { linkedController, type RequestContext, selectorsOf } from './requests.js'
import { pathOf } from './resource.js'
import { statusErrorOf } from './status-error.js'
import { Turn } from './turn.js'

export interface WatchReceiver {
  /** The server has accepted the watch. */
  opened(): void
  event(event: WatchEvent): void
  /** The events so far came together. */
  endBatch(): void
}

export interface WatchEvent {
  readonly type: string
  readonly object: unknown
}

/** Where a watch begins: after a version, or with everything that exists (a streaming list). */
export type WatchFrom = { readonly resourceVersion: string } | 'initial events'

/**
 * Reads one watch to its end. Returns when the server ends it, and throws when it refuses it, when it breaks off, when it hangs
 * past its time, or when the receiver throws.
 */
export async function readWatch(
  context: RequestContext,
  from: WatchFrom,
  receiver: WatchReceiver,
  signal: AbortSignal,
): Promise<void> {
  const { resource, timing } = context
  const [shortest, longest] = timing.watchSeconds
  const timeoutSeconds = Math.round(shortest + Math.random() * (longest - shortest))
  const { controller, unlink } = linkedController(signal)
  const longestMs = timeoutSeconds * 1000 + timing.watchGraceMs
  const hung = setTimeout(() => {
    const sentence = `The watch of ${resource.name} was not ended by the server ${longestMs / 1000} s after its start: it hangs.`
    controller.abort(new KpngError('unavailable', sentence))
  }, longestMs)
  try {
    await follow(context, queryOf(from, timeoutSeconds), receiver, controller.signal)
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason
    if (error instanceof KpngError) throw error
    throw new KpngError('unavailable', `The watch of ${resource.name} broke off: ${messageOf(error)}.`, {
      cause: error,
    })
  } finally {
    clearTimeout(hung)
    unlink()
  }
}

async function follow(
  context: RequestContext,
  query: Readonly<Record<string, string>>,
  receiver: WatchReceiver,
  signal: AbortSignal,
): Promise<void> {
  const { connection, resource, timing } = context
  const response = await connection.request({
    path: pathOf(resource),
    query: { ...query, ...selectorsOf(resource) },
    signal,
    headersTimeoutMs: timing.answerTimeoutMs,
    bodyTimeoutMs: 0,
  })
  if (response.status !== 200) throw await statusErrorOf(`watch ${resource.name}`, response)
  receiver.opened()
  const lines = new LineSplitter()
  const turn = new Turn()
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      turn.begin()
      for (const line of lines.push(chunk)) {
        receiver.event(parseEvent(line, context))
        if (!turn.isOver) continue
        receiver.endBatch()
        await turn.letOthersRun()
      }
      receiver.endBatch()
    }
  } finally {
    // However it ends: what has been read must not wait for the next watch.
    receiver.endBatch()
  }
}

function queryOf(from: WatchFrom, timeoutSeconds: number): Record<string, string> {
  const query = { watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(timeoutSeconds) }
  if (from !== 'initial events') return { ...query, resourceVersion: from.resourceVersion }
  // Without a resourceVersion: the list is as fresh as a read from etcd.
  return { ...query, sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
}

function parseEvent(line: Buffer, { connection, resource }: RequestContext): WatchEvent {
  try {
    const event = JSON.parse(line.toString('utf8')) as WatchEvent | null
    if (typeof event?.type === 'string') return event
  } catch {}
  throw new WatchContentError(
    'invalid',
    `The server ${connection.server} sent something in the watch of ${resource.name} that is no watch event. Check that it ` +
      'is a Kubernetes API server.',
  )
}

/** What came in a watch cannot be understood. It would come again from the same version on. */
export class WatchContentError extends KpngError {}

/** The resourceVersion of any object. */
export function versionIn(object: unknown): string | undefined {
  const { metadata } = (object ?? {}) as { metadata?: { resourceVersion?: unknown } | null }
  const version = metadata?.resourceVersion
  return typeof version === 'string' && version !== '' ? version : undefined
}

/** The mark on the bookmark that ends the initial events of a streaming list. */
export function endsInitialEvents(object: unknown): boolean {
  const { metadata } = (object ?? {}) as { metadata?: { annotations?: Record<string, unknown> | null } | null }
  return metadata?.annotations?.['k8s.io/initial-events-end'] === 'true'
}
