import { KpngError, messageOf } from '@kpng/api'
import type { ConnectionConfig } from './config.js'

/** A sentence for what went wrong below HTTP: who could not be reached, why, and which field to look at. */
export function networkError(error: unknown, { cluster, described }: ConnectionConfig): KpngError {
  if (error instanceof KpngError) return error
  const who = `the API server ${cluster.server} (${described})`
  const code = codeOf(error)
  const [kind, why] = explain(code, messageOf(error), cluster.serverField, cluster.server)
  return new KpngError(kind, kind === 'invalid' ? `Cannot talk to ${who}: ${why}` : `Cannot reach ${who}: ${why}`, {
    cause: error,
  })
}

/** The code of the error, or of what caused it: undici wraps the socket's errors. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string') return code
    if (at instanceof AggregateError && at.errors.length > 0) return codeOf(at.errors[0])
  }
  return ''
}

type Explanation = readonly [kind: 'unavailable' | 'invalid', why: string]

const untrusted = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
])

function explain(code: string, message: string, field: string, server: string): Explanation {
  if (untrusted.has(code)) {
    return [
      'invalid',
      `its certificate is signed by no CA that is trusted here. Check certificate-authority beside ${field}.`,
    ]
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = message.replace(/^.*?altnames: /s, '')
    return ['invalid', `its certificate is for other names (${names}). Check ${field}, or set tls-server-name.`]
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return ['invalid', `its certificate has expired. Renew it on the server, or check this machine's clock.`]
  }
  if (isPlainHttp(code, message)) {
    return ['invalid', `it does not speak TLS on this port. Check ${field}: perhaps http:// is meant, or another port.`]
  }
  if (/tlsv1\d* alert|sslv3 alert|ALERT/i.test(message) || /ALERT/.test(code)) {
    const alert = /alert ([a-z ]+)/i.exec(message)?.[1]?.trim() ?? 'an alert'
    return ['invalid', `it refused the TLS connection (${alert}). Check the client certificate of this user.`]
  }
  if (code.startsWith('HPE_') || /does not match the HTTP/.test(message)) {
    return ['invalid', `it does not answer in HTTP. Check ${field}: perhaps https:// is meant, or another port.`]
  }
  const plain = server.startsWith('http:') ? ' If it speaks HTTPS on this port, write https://.' : ''
  const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: `the connection was refused. Check that it runs, and ${field}.`,
    ECONNRESET: `the connection was reset.${plain}`,
    UND_ERR_SOCKET: `the connection was closed.${plain}`,
    ENOTFOUND: `its name is not known to DNS. Check ${field}.`,
    EAI_AGAIN: `its name cannot be looked up now. Check the DNS set-up of this machine.`,
    EHOSTUNREACH: `there is no route to it. Check the network, and ${field}.`,
    ENETUNREACH: `there is no route to it. Check the network, and ${field}.`,
    UND_ERR_CONNECT_TIMEOUT: `the connection was not accepted in time. Check the network, and ${field}.`,
    UND_ERR_HEADERS_TIMEOUT: `it took the request and did not answer in time.`,
    UND_ERR_BODY_TIMEOUT: `it stopped in the middle of an answer.`,
  }
  if (/Proxy response \((\d+)\)/.test(message)) {
    return [
      'unavailable',
      `the proxy answered ${/\((\d+)\)/.exec(message)?.[1]}. Check proxy-url (or HTTPS_PROXY) and its credentials.`,
    ]
  }
  return ['unavailable', words[code] ?? `${message || code}.`]
}

const isPlainHttp = (code: string, message: string): boolean =>
  code === 'ERR_SSL_WRONG_VERSION_NUMBER' ||
  code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG' ||
  /wrong version number|packet length too long|unknown protocol/i.test(message)
