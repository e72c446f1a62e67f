import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { messageOf } from '@kpng/api'
import type { Definition } from '../schema/parse.js'
import { decodeProtobuf, isProtobuf } from '../schema/protobuf-decode.js'
import { badRequest, StatusError } from '../status/status.js'
import type { Stored } from '../storage/store.js'
import type { Page } from './list.js'
import type { Representation } from './representation.js'

export function sendJson(
  response: ServerResponse,
  code: number,
  body: unknown,
  warnings: readonly string[] = [],
): void {
  sendText(response, code, `${JSON.stringify(body)}\n`, 'application/json', warnings)
}

export function sendText(
  response: ServerResponse,
  code: number,
  text: string | Buffer,
  type: string,
  warnings: readonly string[] = [],
): void {
  const headers: Record<string, string | string[]> = {
    'content-type': type,
    'content-length': String(Buffer.byteLength(text)),
    'cache-control': 'no-cache, private',
  }
  if (warnings.length > 0) headers.warning = warnings.map((warning) => `299 - ${JSON.stringify(warning)}`)
  response.writeHead(code, headers)
  response.end(text)
}

export function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const status =
    error instanceof StatusError
      ? error.status
      : new StatusError(500, 'InternalError', `Internal error occurred: ${messageOf(error)}`).status
  const retryAfter = status.details?.retryAfterSeconds
  if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter))
  if (status.code === 401) response.setHeader('www-authenticate', 'Bearer realm="kpng-playground"')
  sendJson(response, status.code ?? 500, status)
}

export function sendObject(
  response: ServerResponse,
  code: number,
  stored: Stored,
  form: Representation,
  warnings: readonly string[] = [],
): void {
  sendText(response, code, `${form.object(stored)}\n`, 'application/json', warnings)
}

const chunkSize = 1 << 20

/** Waits until the client has read, or is gone. */
async function drained(response: ServerResponse): Promise<void> {
  const done = new AbortController()
  const { signal } = done
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]).finally(() =>
    done.abort(),
  )
}

/** Writes a list in pieces and at the client's pace: a large one never exists as a whole. */
export async function sendList(response: ServerResponse, { items, meta }: Page, form: Representation): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' })
  const { head, tail } = form.list(meta)
  let chunk = head
  for (const [index, stored] of items.entries()) {
    chunk += (index === 0 ? '' : ',') + form.item(stored)
    if (chunk.length < chunkSize) continue
    if (!response.write(chunk)) await drained(response)
    if (response.destroyed) return
    chunk = ''
  }
  response.end(chunk + tail)
}

const maximumBody = 3 * 1024 * 1024

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > maximumBody) {
      throw new StatusError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maximumBody}`)
    }
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

export function parseBody(body: Buffer, definition?: Definition): unknown {
  if (definition && isProtobuf(body)) return decodeProtobuf(body, definition)
  const text = body.toString('utf8')
  try {
    // The second form is slow, and needed only if such a key may be there, spelled out or with escapes.
    return /__proto__|\\u00/i.test(text) ? JSON.parse(text, refusePrototype) : JSON.parse(text)
  } catch (error) {
    if (error instanceof StatusError) throw error
    throw badRequest(`the body of the request is not JSON: ${messageOf(error)}`)
  }
}

/** Copying a field of this name would change the prototype of the copy. */
function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw badRequest('the body of the request has a field "__proto__"')
  return value
}
