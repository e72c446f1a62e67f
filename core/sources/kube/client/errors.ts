import type { Readable } from 'node:stream'
import { KpngError, messageOf } from '@kpng/api'
import { type TlsProblem, tlsProblemOf } from '@kpng/api/node'
import type { ConnectionConfig } from './config.js'

// Why a request did not get an answer of a Kubernetes API server.

/** A sentence for what failed below HTTP: which server could not be reached, why, and which field to check. */
export function networkError(error: unknown, { cluster, described }: ConnectionConfig): KpngError {
  if (error instanceof KpngError) return error
  const who = `the API server ${cluster.server} (${described})`
  const code = codeOf(error)
  const problem = tlsProblemOf(messageOf(error), code)
  const misuse = problem ? tlsSentence(problem, cluster.serverField) : notHttpSentence(code, error, cluster.serverField)
  if (misuse !== undefined) return new KpngError('invalid', `Cannot talk to ${who}: ${misuse}`, { cause: error })
  const why = unreachableSentence(code, messageOf(error), cluster.serverField, cluster.server)
  return new KpngError('unavailable', `Cannot reach ${who}: ${why}`, { cause: error })
}

/** The code of the error, or of its cause: undici wraps the errors of sockets. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string') return code
    if (at instanceof AggregateError && at.errors.length > 0) return codeOf(at.errors[0])
  }
  return ''
}

function tlsSentence(problem: TlsProblem, field: string): string {
  switch (problem.kind) {
    case 'no certificate':
    case 'untrusted':
      return `no CA that is trusted here signed its certificate. Check certificate-authority beside the ${field}.`
    case 'other names':
      return `its certificate is for other names (${problem.names}). Check the ${field}, or set tls-server-name.`
    case 'expired':
      return 'its certificate has expired. Renew it on the server, or check the clock of this machine.'
    case 'not yet valid':
      return 'its certificate is not valid yet. Check the clocks of the server and of this machine.'
    case 'no TLS':
      return `it does not speak TLS on this port. Check the ${field}: perhaps it should start with http://, or have another port.`
    case 'alert':
      return `it refused the TLS connection (${problem.alert}). Check the client certificate of this user.`
  }
}

function notHttpSentence(code: string, error: unknown, field: string): string | undefined {
  if (!code.startsWith('HPE_') && !/does not match the HTTP/.test(messageOf(error))) return undefined
  return `it does not answer in HTTP. Check the ${field}: perhaps it should start with https://, or have another port.`
}

function unreachableSentence(code: string, message: string, field: string, server: string): string {
  const proxyAnswer = /Proxy response \((\d+)\)/.exec(message)?.[1]
  if (proxyAnswer) return `the proxy answered ${proxyAnswer}. Check proxy-url (or HTTPS_PROXY) and its credentials.`
  const plain = server.startsWith('http:') ? ' If it speaks HTTPS on this port, write https://.' : ''
  const sentences: Readonly<Record<string, string>> = {
    ECONNREFUSED: `the connection was refused. Check that the server runs, and the ${field}.`,
    ECONNRESET: `the connection was reset.${plain}`,
    UND_ERR_SOCKET: `the connection was closed.${plain}`,
    ENOTFOUND: `DNS does not know its name. Check the ${field}.`,
    EAI_AGAIN: 'its name cannot be looked up now. Check the DNS configuration of this machine.',
    EHOSTUNREACH: `there is no route to it. Check the network, and the ${field}.`,
    ENETUNREACH: `there is no route to it. Check the network, and the ${field}.`,
    UND_ERR_CONNECT_TIMEOUT: `the connection was not accepted in time. Check the network, and the ${field}.`,
    UND_ERR_HEADERS_TIMEOUT: 'it accepted the request and did not answer in time.',
    UND_ERR_BODY_TIMEOUT: 'it stopped in the middle of an answer.',
  }
  return sentences[code] ?? `${message || code}.`
}

/** Throws if no Kubernetes API server gives such an answer: a login page, a redirect, some other web server. */
export async function refuseForeignAnswer(
  status: number,
  contentType: string | string[] | undefined,
  body: Readable,
  path: string,
  { cluster, described }: ConnectionConfig,
): Promise<void> {
  const [type = ''] = String(contentType ?? '').split(/\s*;/)
  const refuse = (what: string) => {
    body.destroy()
    return new KpngError(
      'invalid',
      `The server ${cluster.server} (${described}) answered ${path} with ${what}. It is not a Kubernetes API server, or ` +
        `something in front of it answered. Check the ${cluster.serverField}.`,
    )
  }
  if (status >= 300 && status < 400) throw refuse(`a redirect (${status})`)
  if (status < 300 && type !== 'application/json') throw refuse(type ? `${type} instead of JSON` : 'no JSON')
  // The API server itself says "404 page not found" in plain text if it lacks a whole API group.
  if (status === 404 && type === 'text/html') throw refuse('a web page (404)')
  if (status === 400 && type === 'text/plain') {
    const text = await readBody(body)
    if (/HTTP request to an HTTPS server/i.test(text)) throw refuse('"this is an HTTPS port": write https://')
    throw refuse('400 in plain text')
  }
}

/** The beginning of a body as text, at most 64 KiB; the rest is dropped. For answers that are errors. */
export async function readBody(body: Readable, maxBytes = 65_536): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= maxBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBytes).toString('utf8')
}
