import { KpngError, messageOf } from '@kpng/api'
import { ListScanner } from './list-scanner.js'
import { type RequestContext, selectorsOf } from './requests.js'
import { pathOf } from './resource.js'
import { StatusError, statusErrorOf } from './status-error.js'
import { Turn } from './turn.js'

export interface PageReceiver {
  /** The list begins; also again, when it cannot be gone on with. */
  start(): void
  object(value: unknown): void
  /** The objects so far came together. */
  endBatch(): void
}

export interface PagesOptions {
  /** Objects a page. */
  readonly pageSize: number
  /**
   * How fresh the list must be, as client-go's reflector and pager ask for it:
   * - `0`, the first list: whatever the server has in its watch cache. All agents that start at once must not become as many reads of
   *   etcd. The limit goes along: the cache ignores it, and a server without one answers in pages.
   * - a version, a list after a lost watch: from the cache as well, once that has come so far, and so never back in time. Without
   *   a limit, which would send it to etcd.
   * - empty: what etcd has, in pages.
   *
   * A list that comes in one go costs no more memory here than pages: its items are cut out of it while it arrives.
   */
  readonly notOlderThan: string
}

interface PageRequest {
  readonly limit: number
  readonly resourceVersion: string
  readonly token: string
}

interface Page {
  readonly resourceVersion: string
  readonly next: string
}

/**
 * Reads a resource completely, page by page, and returns the version that the list is of. When the server forgets a list that
 * is under way (410), it is read again from its beginning and in one go, as client-go does: pages would only expire again.
 */
export async function readPages(
  context: RequestContext,
  receiver: PageReceiver,
  signal: AbortSignal,
  { pageSize, notOlderThan }: PagesOptions,
): Promise<string> {
  const inOneGo = { limit: 0, resourceVersion: notOlderThan, token: '' }
  let request: PageRequest = notOlderThan === '' || notOlderThan === '0' ? { ...inOneGo, limit: pageSize } : inOneGo
  receiver.start()
  for (;;) {
    try {
      const page = await readPage(context, receiver, signal, request)
      if (page.next === '') return page.resourceVersion
      if (page.next === request.token) throw notAList(context, 'it repeats a page')
      request = { limit: pageSize, resourceVersion: '', token: page.next }
    } catch (error) {
      if (!(error instanceof StatusError) || !error.isExpired || request.token === '') throw error
      request = inOneGo
      receiver.start()
    }
  }
}

async function readPage(
  context: RequestContext,
  receiver: PageReceiver,
  signal: AbortSignal,
  { limit, resourceVersion, token }: PageRequest,
): Promise<Page> {
  const { connection, resource, timing } = context
  const response = await connection.request({
    path: pathOf(resource),
    query: {
      ...selectorsOf(resource),
      ...(limit > 0 && { limit: String(limit) }),
      ...(resourceVersion !== '' && { resourceVersion }),
      ...(token !== '' && { continue: token }),
    },
    signal,
    headersTimeoutMs: timing.answerTimeoutMs,
    bodyTimeoutMs: timing.answerTimeoutMs,
  })
  if (response.status !== 200) throw await statusErrorOf(`list ${resource.name}`, response)

  const scanner = new ListScanner()
  const turn = new Turn()
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      turn.begin()
      for (const item of scanner.push(chunk)) {
        receiver.object(JSON.parse(item.toString('utf8')))
        if (turn.isOver) await turn.letOthersRun()
      }
      receiver.endBatch()
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (error instanceof KpngError) throw error
    if (error instanceof SyntaxError) throw notAList(context, error.message)
    throw new KpngError('unavailable', `The list of ${resource.name} broke off: ${messageOf(error)}.`, { cause: error })
  }
  return pageOf(context, scanner)
}

function pageOf(context: RequestContext, scanner: ListScanner): Page {
  let envelope: unknown
  try {
    envelope = scanner.envelope()
  } catch (error) {
    throw notAList(context, messageOf(error))
  }
  const { metadata } = (envelope ?? {}) as { metadata?: { resourceVersion?: unknown; continue?: unknown } }
  if (typeof metadata?.resourceVersion !== 'string' || metadata.resourceVersion === '') {
    throw notAList(context, 'it has no metadata.resourceVersion')
  }
  return {
    resourceVersion: metadata.resourceVersion,
    next: typeof metadata.continue === 'string' ? metadata.continue : '',
  }
}

const notAList = ({ connection, resource }: RequestContext, why: string): KpngError =>
  new KpngError(
    'invalid',
    `The answer of ${connection.server} to a list of ${resource.name} is no Kubernetes list: ${why}. Check that it is a ` +
      'Kubernetes API server.',
  )
