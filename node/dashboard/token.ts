import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { KpngError, messageOf } from '@kpng/api'

const cookieName = 'kpng-dashboard'
const leastLength = 16

/** Reads the token that people and programs must show. */
export async function readToken(file: string): Promise<string> {
  let token: string
  try {
    token = (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `The token file ${file} of the dashboard cannot be read: ${messageOf(error)}. Check its path and owner.`,
      { cause: error },
    )
  }
  if (token.length >= leastLength && /^[\x21-\x7e]+$/.test(token)) return token
  throw new KpngError(
    'invalid',
    `The token in ${file} must be one word of at least ${leastLength} characters. Make one: openssl rand -hex 32`,
  )
}

/** Who may see the dashboard: those who show the token, in a header or in the cookie that `/?token=…` sets. */
export class TokenCheck {
  readonly #token: string
  /** Made from the token, so that the token itself is not kept in a browser. */
  readonly #cookie: string

  constructor(token: string) {
    this.#token = token
    this.#cookie = createHmac('sha256', token).update('kpng dashboard cookie').digest('base64url')
  }

  /** Whether the request may be answered. If not, it has been: with a login, or with a refusal. */
  admits(url: URL, request: IncomingMessage, response: ServerResponse): boolean {
    const shown = url.pathname === '/' ? url.searchParams.get('token') : null
    if (shown !== null && this.#isSame(shown, this.#token)) {
      // The token disappears from the address, and so from the history.
      response.writeHead(303, {
        Location: '/',
        'Set-Cookie': `${cookieName}=${this.#cookie}; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=604800`,
        'Cache-Control': 'no-store',
      })
      response.end()
      return false
    }
    if (shown === null && (this.#hasHeader(request) || this.#hasCookie(request))) return true
    response.writeHead(401, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Cache-Control': 'no-store',
      'WWW-Authenticate': 'Bearer',
    })
    response.end('Show the token of this dashboard: open /?token=…, or send "Authorization: Bearer …".\n')
    return false
  }

  #hasHeader({ headers }: IncomingMessage): boolean {
    const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? []
    return token !== undefined && this.#isSame(token, this.#token)
  }

  #hasCookie({ headers }: IncomingMessage): boolean {
    return (headers.cookie ?? '').split(/; */).some((cookie) => {
      const at = cookie.indexOf('=')
      return cookie.slice(0, at) === cookieName && this.#isSame(cookie.slice(at + 1), this.#cookie)
    })
  }

  /** Takes the same time wherever they differ: what is compared are hashes of one length. */
  #isSame(a: string, b: string): boolean {
    const hash = (text: string) => createHmac('sha256', this.#token).update(text).digest()
    return timingSafeEqual(hash(a), hash(b))
  }
}
