import { KpngError } from '@kpng/api'
import type { ConnectionConfig } from './config.js'
import type { KubeResponse } from './connection.js'
import { readBody } from './read-body.js'

/** Throws when the answer is not one that a Kubernetes API server gives: a login page, a redirect, some other web server. */
export async function refuseForeignAnswer(
  { status, headers, body }: KubeResponse,
  path: string,
  { cluster, described }: ConnectionConfig,
): Promise<void> {
  const type =
    String(headers['content-type'] ?? '')
      .split(';')[0]
      ?.trim() ?? ''
  const refuse = (what: string) => {
    body.destroy()
    return new KpngError(
      'invalid',
      `The server ${cluster.server} (${described}) answered ${path} with ${what}. It is no Kubernetes API server, or ` +
        `something in front of it answered. Check ${cluster.serverField}.`,
    )
  }
  if (status >= 300 && status < 400) throw refuse(`a redirect (${status})`)
  if (status < 300 && type !== 'application/json') throw refuse(type ? `${type} instead of JSON` : 'no JSON')
  // The API server itself says "404 page not found" in plain text where it lacks a whole API group.
  if (status === 404 && type === 'text/html') throw refuse('a web page (404)')
  if (status === 400 && type === 'text/plain') {
    const text = await readBody(body)
    if (/HTTP request to an HTTPS server/i.test(text)) throw refuse('"this is an HTTPS port": write https://')
    throw refuse('400 in plain text')
  }
}
