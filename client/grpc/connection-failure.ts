import { KpngError, messageOf } from '@kpng/api'
import { isAboutCertificate, type TlsProblem, tlsProblemOf } from '@kpng/api/node'
import type { TlsFiles } from '../tls.js'

/** Why there is no connection, in a sentence that says what to do. The same reason always gives the same sentence. */
export function explainFailure(error: unknown, tls: TlsFiles | undefined): string {
  if (error instanceof KpngError) return error.message
  const { details, code } = error as { details?: unknown; code?: unknown }
  // A call that ended with words of the server, or that was connected before, needs no guessing.
  const text = typeof details === 'string' ? details : messageOf(error)
  if (text === '') return `The call ended with code ${code}.`
  if (typeof details === 'string' && !framed.test(details)) return withoutTime(details)
  const said = withoutTime(text.replace(framed, '').replace(/\. Resolution note: [\s\S]*$/, ''))
  const problem = tlsProblemOf(said)
  const sentence = problem && explainTls(problem, tls)
  if (sentence !== undefined) return sentence
  for (const [pattern, explain] of explanations) {
    const match = pattern.exec(said)
    if (match) return explain(match, tls)
  }
  return said
}

/** How grpc-js begins when it could not connect. */
const framed = /^No connection established\. Last error: (?:Error(?: \[\w+\])?: )?|^(?=Name resolution failed)/

/** grpc-js puts the time into some texts, which would make every failure a new one. */
const withoutTime = (text: string): string => text.replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/, '').trim()

type Explanation = readonly [RegExp, (match: RegExpExecArray, tls: TlsFiles | undefined) => string]

const ownCertificate = 'Give a certificate for clients, with its key, of an authority that the server trusts.'

const noTls =
  'The server does not speak TLS at this address. Is it the right port? Else turn TLS on at the server, or off here.'

function explainTls(problem: TlsProblem, tls: TlsFiles | undefined): string | undefined {
  switch (problem.kind) {
    case 'other names':
      return `The server's certificate does not name this address (${problem.names}). Is it the right address? Then the certificate needs it as a subject alternative name.`
    case 'untrusted':
      return tls?.caFile === undefined
        ? "The server's certificate is of an authority that this machine does not know. Give that authority's certificate."
        : `The server's certificate is not of the authority in ${tls.caFile}. Give the certificate of the authority that signed it.`
    case 'expired':
      return "The server's certificate has expired. Renew it, or set this machine's clock right."
    case 'not yet valid':
      return "The server's certificate is not yet valid. Renew it, or set this machine's clock right."
    case 'no TLS':
      return noTls
    case 'alert':
      if (problem.alert === 'certificate required')
        return `The server wants a certificate of this client. ${ownCertificate}`
      return isAboutCertificate(problem.alert)
        ? `The server refused this client's certificate (${problem.alert}). ${ownCertificate}`
        : undefined
    default:
      return undefined
  }
}

// The other words of Node and of OpenSSL, which every version of Node brings along.
const explanations: readonly Explanation[] = [
  [/before secure TLS connection was established/, () => noTls],
  [
    /key values mismatch/,
    (_, tls) =>
      `The key in ${tls?.keyFile} does not belong to the certificate in ${tls?.certFile}. Give both of one pair.`,
  ],
  [
    /no start line|PEM routines|DECODER routines/,
    () =>
      'One of the TLS files holds no usable PEM. Look for the line "-----BEGIN …" in the key, the certificate and the CA certificate.',
  ],
  // No alert, no word: how Node's TLS servers refuse certificates, and how all of them refuse plain text.
  [/^Failed to connect$|ECONNRESET|EPIPE|socket hang up/, (_, tls) => closedWithoutWord(tls)],
  [
    /connect (ECONNREFUSED|ENOENT)/,
    ([, code]) => `Nothing listens at this address (${code}). Is the server running, and the address right?`,
  ],
  [
    /^Name resolution failed/,
    () => 'The name has no address here. Is it right? On a node that boots without DNS, give an IP address.',
  ],
  [/:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/, ([, words]) => `TLS failed (${words}). Does the server's side log more?`],
]

function closedWithoutWord(tls: TlsFiles | undefined): string {
  const closed = 'The server closed the connection without a word.'
  if (tls === undefined)
    return `${closed} It may want TLS. Give a CA certificate, a certificate for clients and its key.`
  if (tls.certFile === undefined) return `${closed} It may want a certificate of this client. ${ownCertificate}`
  return `${closed} It may have refused the certificate in ${tls.certFile}. ${ownCertificate}`
}
