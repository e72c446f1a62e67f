import type { Readable } from 'node:stream'
import { KpngError, messageOf } from '@kpng/api'
import { SilentWatch, statusErrorOf, WatchContentError } from './failure.js'
import { pathOf, type RequestContext, selectorsOf } from './resource.js'

export interface WatchEvent {
  readonly type: string
  readonly object: unknown
}

/** Where a watch begins: after a version, or with everything that exists (a streaming list). */
export type WatchFrom = { readonly resourceVersion: string } | 'initial events'

/** A watch that the server has accepted. */
export interface Watch {
  /**
   * The events, in groups that arrived together. Ends when the server ends the watch, or its bookmarks stay away. Throws if the watch
   * brings nothing although bookmarks are expected, breaks off, hangs past its time, is aborted, or contains something that is not an event; the group of such an event is lost.
   */
  readonly events: AsyncGenerator<readonly WatchEvent[]>
  abort(reason: Error): void
}

/**
 * Opens a watch. Throws if the server refuses it.
 * @param expectsBookmarks whether the server is known to send bookmarks, so that a watch without any is replaced
 */
export async function openWatch(
  context: RequestContext,
  from: WatchFrom,
  signal: AbortSignal,
  expectsBookmarks = false,
): Promise<Watch> {
  const { connection, resource, timing } = context
  const [shortest, longest] = timing.watchSeconds
  const timeoutSeconds = Math.round(shortest + Math.random() * (longest - shortest))
  const longestMs = timeoutSeconds * 1000 + timing.watchGraceMs
  const controller = new AbortController()
  const stop = () => controller.abort(signal.reason)
  const hung = setTimeout(() => {
    const sentence = `The server did not end the watch of ${resource.name} within ${longestMs / 1000} s: it hangs.`
    controller.abort(new KpngError('unavailable', sentence))
  }, longestMs)
  const close = () => {
    clearTimeout(hung)
    signal.removeEventListener('abort', stop)
  }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  try {
    const response = await connection.request({
      path: pathOf(resource),
      query: { ...queryOf(from, timeoutSeconds), ...selectorsOf(resource) },
      signal: controller.signal,
      headersTimeoutMs: timing.answerTimeoutMs,
      bodyTimeoutMs: 0,
    })
    if (response.status !== 200) throw await statusErrorOf(`watch ${resource.name}`, response)
    return {
      events: eventsIn(response.body, context, controller.signal, { close, expectsBookmarks }),
      abort: (reason) => controller.abort(reason),
    }
  } catch (error) {
    close()
    throw controller.signal.aborted ? controller.signal.reason : error
  }
}

async function* eventsIn(
  body: Readable,
  context: RequestContext,
  signal: AbortSignal,
  { close, expectsBookmarks }: { close: () => void; expectsBookmarks: boolean },
): AsyncGenerator<readonly WatchEvent[]> {
  const { resource, timing } = context
  const lines = new LineSplitter()
  let hasBrought = false
  let isQuiet = false
  const endQuietly = () => {
    isQuiet = true
    body.destroy()
  }
  let quiet = expectsBookmarks ? setTimeout(endQuietly, timing.quietWatchMs) : undefined
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const events: WatchEvent[] = []
      for (const line of lines.push(chunk)) events.push(parseEvent(line, context))
      if (quiet) quiet.refresh()
      else if (events.some(isPeriodicBookmark)) quiet = setTimeout(endQuietly, timing.quietWatchMs)
      if (events.length === 0) continue
      hasBrought = true
      yield events
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (isQuiet && hasBrought) return
    if (isQuiet) throw new SilentWatch(resource.name, timing.quietWatchMs)
    if (error instanceof KpngError) throw error
    const sentence = `The watch of ${resource.name} broke off: ${messageOf(error)}.`
    throw new KpngError('unavailable', sentence, { cause: error })
  } finally {
    clearTimeout(quiet)
    close()
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
    `The server ${connection.server} sent something in the watch of ${resource.name} that is not a watch event. Check that ` +
      'it is a Kubernetes API server.',
  )
}

/** Whether a bookmark is the one that ends the initial events of a streaming list. */
export function endsInitialEvents(object: unknown): boolean {
  const { metadata } = (object ?? {}) as { metadata?: { annotations?: Record<string, unknown> | null } | null }
  return metadata?.annotations?.['k8s.io/initial-events-end'] === 'true'
}

export const isPeriodicBookmark = ({ type, object }: WatchEvent): boolean =>
  type === 'BOOKMARK' && !endsInitialEvents(object)

const lineFeed = 10

/**
 * Cuts a stream of bytes into lines. It holds only the line that has not ended yet, in the pieces in which it came, so that a
 * line of several MB costs one copy.
 */
export class LineSplitter {
  readonly #maxBytes: number
  #pieces: Buffer[] = []
  #size = 0

  /** @param maxBytes a longer line is an error: no API server can hold such an object */
  constructor(maxBytes = 64 * 1024 * 1024) {
    this.#maxBytes = maxBytes
  }

  /** The lines that this chunk completes, without line feeds. Empty lines are left out. */
  *push(chunk: Buffer): Generator<Buffer> {
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      const line = this.#complete(chunk.subarray(start, end))
      start = end + 1
      if (line.length > 0) yield line
    }
    if (start === chunk.length) return
    this.#pieces.push(start === 0 ? chunk : chunk.subarray(start))
    this.#size += chunk.length - start
    if (this.#size > this.#maxBytes) {
      throw new KpngError('invalid', `The API server sent a line of more than ${this.#maxBytes} bytes in a watch.`)
    }
  }

  #complete(rest: Buffer): Buffer {
    if (this.#pieces.length === 0) return rest
    const line = Buffer.concat([...this.#pieces, rest])
    this.#pieces = []
    this.#size = 0
    return line
  }
}
