import { X509Certificate } from 'node:crypto'
import type { CertificateFact } from './cluster-facts.js'

/** The certificates in a PEM text. Keys in it are not looked at. Throws if one cannot be read. */
export function certificatesIn(pem: string, where: string): CertificateFact[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g)
  if (!blocks) throw new Error(`${where} holds no certificate in PEM form`)
  return blocks.map((block) => {
    const { subject, validFrom, validTo } = new X509Certificate(block)
    const validFromMs = Date.parse(validFrom)
    return { where, subject: subject.replaceAll('\n', ', '), validFromMs, validToMs: Date.parse(validTo) }
  })
}
