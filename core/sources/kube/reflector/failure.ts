import { KpngError, type LogFields, messageOf } from '@kpng/api'
import { type KubeResponse, readBody } from '../client/index.js'
import { type Resource, ruleOf } from './resource.js'

/** The API server refused: it sent a `Status` object, as an HTTP answer or inside a watch. */
export class StatusError extends KpngError {
  /** The HTTP status code. */
  readonly status: number
  /** How long the server asks us to wait. */
  readonly retryAfterMs: number | undefined
  /** What the server said. */
  readonly said: string

  constructor(what: string, status: number, said: string, retryAfterMs?: number) {
    super('refused', `The API server refused to ${what}: ${status}${said ? `, ${said}` : ''}.`)
    this.status = status
    this.said = said
    this.retryAfterMs = retryAfterMs
  }

  /** The requested version is too old: everything must be listed again. */
  get isExpired(): boolean {
    return this.status === 410
  }
}

/** Reads an answer that is not 200. */
export async function statusErrorOf(what: string, { status, headers, body }: KubeResponse): Promise<StatusError> {
  const text = await readBody(body).catch(() => '')
  const said = messageIn(text) ?? (text.startsWith('<') ? '' : text.trim().slice(0, 200))
  return new StatusError(what, status, said, retryAfterMs(headers['retry-after'], Date.now()))
}

/** Reads the `Status` object of an ERROR event. If it has no code, the reason tells whether the version has expired. */
export function statusErrorIn(what: string, object: unknown): StatusError {
  const { code, reason, message, details } = (object ?? {}) as {
    code?: unknown
    reason?: unknown
    message?: unknown
    details?: { retryAfterSeconds?: unknown }
  }
  const expired = reason === 'Expired' || reason === 'Gone'
  const seconds = details?.retryAfterSeconds
  return new StatusError(
    what,
    typeof code === 'number' ? code : expired ? 410 : 500,
    typeof message === 'string' ? message.slice(0, 500) : '',
    typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : undefined,
  )
}

function messageIn(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { message?: unknown }
    return typeof message === 'string' ? message.slice(0, 500) : undefined
  } catch {
    return undefined
  }
}

/** Reads a Retry-After header: seconds, or a date. */
function retryAfterMs(header: string | string[] | undefined, now: number): number | undefined {
  if (typeof header !== 'string') return undefined
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - now) / 1000
  return seconds > 0 ? seconds * 1000 : undefined
}

/** The content of a watch cannot be understood. The same content would come again from the same version. */
export class WatchContentError extends KpngError {}

/** The server sends bookmarks, and a watch brought nothing at all: something between kpng and the server may hold the connection open. */
export class SilentWatch extends KpngError {
  constructor(resource: string, quietMs: number) {
    super('unavailable', `The watch of ${resource} brought nothing for ${quietMs / 1000} s, not even a bookmark.`)
  }
}

/** The server ignored the request for a streaming list and began an ordinary watch. */
export class NotStreaming extends KpngError {
  constructor() {
    super('unsupported', 'The server does not say where the initial events end.')
  }
}

/** Whether the server has no streaming lists, so that pages must be read. */
export function refusesStreaming(error: unknown): boolean {
  if (error instanceof NotStreaming) return true
  if (!(error instanceof StatusError)) return false
  // 1.27 and newer without the feature, and aggregated servers: 422. Older ones forbid resourceVersionMatch in watches.
  if (/sendInitialEvents|resourceVersionMatch/.test(error.said)) return error.status >= 400 && error.status < 500
  return [400, 405, 406, 422].includes(error.status) && !/field label not supported/i.test(error.said)
}

/**
 * What to do after a failure:
 * - `resume`: try again from the same version
 * - `relist`: the version is too old, list again and compare
 * - `start over`: the server knows less than before: list again, and do not take a known version for the same content
 * - `absent`: the server does not have this optional resource, so no object of it exists
 * - `forbidden`: the server refuses this optional resource: look again rarely
 * - `without field selector`: the server cannot select by that field
 */
export type NextStep = 'resume' | 'relist' | 'start over' | 'absent' | 'forbidden' | 'without field selector'

export interface Failure {
  readonly next: NextStep
  readonly level: 'error' | 'warn' | 'detail'
  readonly message: string
  readonly fields: LogFields
  /** The server asks us to wait for this long. */
  readonly retryAfterMs?: number
}

/** Decides what to do after an error, by what the API server can have meant. */
export function judge(error: unknown, resource: Resource): Failure {
  const fields = { resource: resource.name, error: messageOf(error) }
  if (error instanceof WatchContentError) {
    return { next: 'relist', level: 'error', message: 'A watch cannot be understood: listing again', fields }
  }
  if (!(error instanceof StatusError)) {
    return { next: 'resume', level: 'error', message: 'Kubernetes cannot be read: trying again', fields }
  }
  const { status, said } = error
  // "Too large": etcd was restored from a backup. It then gives out the same versions again, for other content.
  if (error.isExpired || /too large resource version/i.test(said)) {
    const message = 'The watch cannot continue from its version: listing again'
    return { next: error.isExpired ? 'relist' : 'start over', level: 'detail', message, fields }
  }
  if (status === 400 && resource.fieldSelector && /field label not supported/i.test(said)) {
    const message = 'The server cannot select by a field: kpng selects the objects itself'
    return { next: 'without field selector', level: 'detail', message, fields }
  }
  if (status === 403) return forbidden(resource, said)
  if (status === 404 && resource.optional) {
    const message = 'The server does not have an optional resource: continuing without it'
    return { next: 'absent', level: 'detail', message, fields }
  }
  if (status === 404) {
    const api = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
    const message = 'The server does not have a resource that kpng needs: check that it is Kubernetes 1.21 or newer'
    return { next: 'resume', level: 'error', message, fields: { ...fields, api } }
  }
  if (status === 401) {
    const message = 'The API server does not accept the credentials, even after they were read again: check them'
    return { next: 'resume', level: 'error', message, fields }
  }
  const retry = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }
  const busy = status === 429 || status >= 500
  const message = busy ? 'The API server cannot answer now: trying again' : 'The API server refuses a request'
  return { next: 'resume', level: busy ? 'warn' : 'error', message, fields, ...retry }
}

function forbidden(resource: Resource, said: string): Failure {
  const { optional, name } = resource
  return {
    next: optional ? 'forbidden' : 'resume',
    level: optional ? 'warn' : 'error',
    message: optional
      ? 'The API server forbids kpng to watch an optional resource: continuing without it. To use it, add this rule to the ClusterRole'
      : 'The API server forbids kpng to watch a resource: add this rule to the ClusterRole',
    fields: { resource: name, rule: ruleOf(resource), answer: said },
  }
}
