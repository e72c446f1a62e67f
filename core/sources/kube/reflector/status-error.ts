import { KpngError } from '@kpng/api'
import { type KubeResponse, readBody } from '../credentials/index.js'

/** The API server answered, and its answer is no: a `Status` object, as an HTTP answer or inside a watch. */
export class StatusError extends KpngError {
  /** The HTTP status code. */
  readonly status: number
  /** How long the server asks to be left alone. */
  readonly retryAfterMs: number | undefined
  /** What the server said. */
  readonly said: string

  constructor(what: string, status: number, said: string, retryAfterMs?: number) {
    super('refused', `The API server refused to ${what}: ${status}${said ? `, ${said}` : ''}.`)
    this.status = status
    this.said = said
    this.retryAfterMs = retryAfterMs
  }

  /** The version asked for is too old: everything has to be listed again. */
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

/** Reads the `Status` object of an ERROR event. Its code may be missing: then the reason tells. */
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

/** Of a Retry-After header: seconds, or a date. */
export function retryAfterMs(header: string | string[] | undefined, now: number): number | undefined {
  if (typeof header !== 'string') return undefined
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - now) / 1000
  return seconds > 0 ? seconds * 1000 : undefined
}
