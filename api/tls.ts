import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

// Parses PEM texts, and the messages of Node and OpenSSL about failed TLS connections. The callers write the sentences for users,
// because they know what the files are for and what to do next.

const pemCertificate = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]*-----END (?:TRUSTED )?CERTIFICATE-----/g

/** The certificates in a PEM text, at least one. Throws an Error that says what the text must be. */
export function parseCertificates(pem: string): X509Certificate[] {
  const blocks = pem.match(pemCertificate) ?? []
  try {
    if (blocks.length > 0) return blocks.map((block) => new X509Certificate(block))
  } catch {}
  throw new Error('it must be PEM with "BEGIN CERTIFICATE"')
}

/** The private key in a PEM text. Throws an Error that says what the text must be, and never contains the text. */
export function parsePrivateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    const isEncrypted = pem.includes('ENCRYPTED')
    throw new Error(
      isEncrypted ? 'it is encrypted; give it without a passphrase' : 'it must be PEM with "BEGIN PRIVATE KEY"',
    )
  }
}

/**
 * Whether a certificate names the host that was connected to; an error if not. Node 22.23 treats an IPv6 address as a host name, which no
 * certificate has, so IPv6 addresses are compared here as well.
 */
export function checkServerName(host: string, certificate: PeerCertificate): Error | undefined {
  const error = checkServerIdentity(host, certificate)
  if (!error || !isIPv6(host)) return error
  return new X509Certificate(certificate.raw).checkIP(host) === undefined ? error : undefined
}

/** Why a TLS connection failed. */
export type TlsProblem =
  /** No trusted CA signed the other side's certificate. */
  | { readonly kind: 'untrusted' }
  /** The other side's certificate is for other names. */
  | { readonly kind: 'other names'; readonly names: string }
  | { readonly kind: 'expired' | 'not yet valid' }
  /** The other side does not speak TLS on this port. */
  | { readonly kind: 'no TLS' }
  /** The other side was asked for a certificate and gave none. */
  | { readonly kind: 'no certificate' }
  /** The other side ended the handshake, mostly because of our certificate. */
  | { readonly kind: 'alert'; readonly alert: string }

const patterns: readonly (readonly [RegExp, (match: RegExpExecArray) => TlsProblem])[] = [
  [/does not match certificate's altnames: (.*)/s, ([, names = '']) => ({ kind: 'other names', names })],
  [/certificate has expired|CERT_HAS_EXPIRED/, () => ({ kind: 'expired' })],
  [/certificate is not yet valid|CERT_NOT_YET_VALID/, () => ({ kind: 'not yet valid' })],
  [
    /self.signed certificate|SELF_SIGNED_CERT|unable to (?:verify|get).*certificate|UNABLE_TO_(?:VERIFY|GET)|certificate signature failure|CERT_SIGNATURE_FAILURE/,
    () => ({ kind: 'untrusted' }),
  ],
  [
    /wrong.version.number|packet.length.too.long|unknown.protocol|^https? (?:proxy )?request$/i,
    () => ({ kind: 'no TLS' }),
  ],
  [/peer did not return a certificate/, () => ({ kind: 'no certificate' })],
  [/alert ([a-z ]+)/, ([, alert = '']) => ({ kind: 'alert', alert: alert.trim() })],
  [/ALERT_([A-Z_]+)/, ([, alert = '']) => ({ kind: 'alert', alert: alert.toLowerCase().replaceAll('_', ' ') })],
]

/**
 * Returns undefined if the error is not about TLS.
 * @param message what Node or OpenSSL said
 * @param code the error's code, if it has one
 */
export function tlsProblemOf(message: string, code = ''): TlsProblem | undefined {
  for (const text of [message, code]) {
    for (const [pattern, problemOf] of patterns) {
      const match = pattern.exec(text)
      if (match) return problemOf(match)
    }
  }
  return undefined
}

/** Whether an alert says that the other side refused our certificate, or wants one. */
export const isAboutCertificate = (alert: string): boolean =>
  /certificate|^unknown ca$|^access denied$|^decrypt error$/.test(alert)
