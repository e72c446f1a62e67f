import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

// What needs Node: it has a subpath of its own (@kpng/api/tls), so that the rest of the package runs in browsers. The callers write the sentences for
// users, because they know what the files are for and what to do next.

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
