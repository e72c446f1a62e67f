import { KpngError, messageOf } from '@kpng/api'
import { StatusError, statusErrorOf } from './failure.js'
import { pathOf, type RequestContext, selectorsOf } from './resource.js'

export interface ListOptions {
  /** Objects per page. */
  readonly pageSize: number
  /**
   * How fresh the list must be, as client-go's reflector and pager ask for it:
   * - `0`, the first list: whatever the server has in its watch cache. A restart of all agents at once must not become as many
   *   reads of etcd. The limit is sent too: the cache ignores it, and a server without a cache answers in pages.
   * - a version, a list after a lost watch: also from the cache, as soon as that has reached the version, so never back in time.
   *   Without a limit, which would send it to etcd.
   * - empty: what etcd has, in pages.
   *
   * A list in one answer needs no more memory here than pages do: its items are cut out of it while it arrives.
   */
  readonly notOlderThan: string
}

/** A part of a list. */
export interface ListPart {
  /** The list begins with this part. It can begin again, if the server could not continue it. */
  readonly isFirst: boolean
  readonly objects: readonly unknown[]
  /** In the last part: the version of the list. */
  readonly version?: string
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
 * Reads a resource completely, page by page. If the server forgets a list before its last page (410), the list is read again from
 * its beginning and without pages, as client-go does: pages would only expire again.
 */
export async function* readList(
  context: RequestContext,
  { pageSize, notOlderThan }: ListOptions,
  signal: AbortSignal,
): AsyncGenerator<ListPart> {
  const inOneAnswer = { limit: 0, resourceVersion: notOlderThan, token: '' }
  let request: PageRequest =
    notOlderThan === '' || notOlderThan === '0' ? { ...inOneAnswer, limit: pageSize } : inOneAnswer
  yield { isFirst: true, objects: [] }
  for (;;) {
    try {
      const page = yield* readPage(context, request, signal)
      if (page.next === '') {
        yield { isFirst: false, objects: [], version: page.resourceVersion }
        return
      }
      if (page.next === request.token) throw notAList(context, 'it repeats a page')
      request = { limit: pageSize, resourceVersion: '', token: page.next }
    } catch (error) {
      if (!(error instanceof StatusError) || !error.isExpired || request.token === '') throw error
      request = inOneAnswer
      yield { isFirst: true, objects: [] }
    }
  }
}

async function* readPage(
  context: RequestContext,
  { limit, resourceVersion, token }: PageRequest,
  signal: AbortSignal,
): AsyncGenerator<ListPart, Page> {
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
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      const objects = scanner.push(chunk).map((item): unknown => JSON.parse(item.toString('utf8')))
      if (objects.length > 0) yield { isFirst: false, objects }
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
    `The answer of ${connection.server} to a list of ${resource.name} is not a Kubernetes list: ${why}. Check that it is a ` +
      'Kubernetes API server.',
  )

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * Cuts the items out of a list answer `{"metadata":{…},"items":[{…},{…}]}` while it arrives. So neither its text (tens of MB for
 * 500 large EndpointSlices) nor all its objects are ever held, and no single parse blocks. The rest, the envelope, is kept
 * and parsed at the end.
 */
export class ListScanner {
  #depth = 0
  #inString = false
  #escaped = false
  #inItems = false
  #envelope: Buffer[] = []
  #item: Buffer[] = []

  /** The items that this chunk completes, as JSON text. */
  push(chunk: Buffer): Buffer[] {
    const items: Buffer[] = []
    // Where the part of the chunk begins that belongs to the current item, or to the envelope.
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (byte === backslash) this.#escaped = true
        else if (byte === quote) this.#inString = false
      } else if (byte === quote) {
        this.#inString = true
      } else if (byte === openBrace || byte === openBracket) {
        this.#depth++
        if (this.#inItems) {
          if (this.#depth === 3) from = at
        } else if (byte === openBracket && this.#depth === 2 && this.#isItems(chunk.subarray(from, at))) {
          this.#envelope.push(chunk.subarray(from, at + 1))
          this.#inItems = true
        }
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--
        if (this.#inItems && this.#depth === 2) {
          items.push(Buffer.concat([...this.#item, chunk.subarray(from, at + 1)]))
          this.#item = []
        } else if (this.#inItems && this.#depth === 1) {
          this.#inItems = false
          from = at
        }
      }
    }
    if (!this.#inItems) this.#envelope.push(chunk.subarray(from))
    else if (this.#depth > 2) this.#item.push(chunk.subarray(from))
    return items
  }

  /** The answer without its items. Throws a SyntaxError if it was cut off or is not JSON. */
  envelope(): unknown {
    return JSON.parse(Buffer.concat(this.#envelope).toString('utf8'))
  }

  /** Whether the array that begins here is the value of the key `items` of the answer itself. */
  #isItems(before: Buffer): boolean {
    const tail = Buffer.concat([...this.#envelope, before]).toString('latin1')
    return /"items"\s*:\s*$/.test(tail)
  }
}
