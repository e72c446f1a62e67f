// Reads the messages of Node and OpenSSL about failed TLS connections.

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
