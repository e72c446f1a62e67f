import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { KpngError, messageOf } from '@kpng/api'
import type { Material } from './config.js'

/** The text of a certificate, key or token, read anew each time: files of clusters rotate. */
export async function readMaterial(material: Material): Promise<string> {
  if ('pem' in material) return material.pem
  try {
    return await readFile(material.file, 'utf8')
  } catch (error) {
    throw new KpngError(
      'unavailable',
      `Cannot read ${material.file}, the ${material.field}: ${messageOf(error)}. Check its path and owner.`,
      { cause: error },
    )
  }
}

export async function readCertificateAuthority(material: Material): Promise<string> {
  const pem = await readMaterial(material)
  certificates(pem, material)
  return pem
}

/** A client certificate and its key, checked: each usable, made for each other, and not expired. */
export async function readClientCertificate(
  certificate: Material,
  key: Material,
  now = Date.now(),
): Promise<{ cert: string; key: string }> {
  const [certPem, keyPem] = await Promise.all([readMaterial(certificate), readMaterial(key)])
  checkClientCertificate(certPem, certificate, keyPem, key, now)
  return { cert: certPem, key: keyPem }
}

export function checkClientCertificate(
  certPem: string,
  certificate: Material,
  keyPem: string,
  key: Material,
  now: number,
): void {
  const [own] = certificates(certPem, certificate)
  const privateKey = parseKey(keyPem, key)
  if (!own?.checkPrivateKey(privateKey)) {
    throw new KpngError(
      'invalid',
      `The ${placeOf(key)} does not belong to the ${placeOf(certificate)}. Give the two that were made together.`,
    )
  }
  const end = Date.parse(own.validTo)
  if (end <= now) {
    throw new KpngError(
      'invalid',
      `The client certificate in the ${placeOf(certificate)} expired at ${new Date(end).toISOString()}. Get a new one.`,
    )
  }
  const start = Date.parse(own.validFrom)
  if (start > now) {
    throw new KpngError(
      'invalid',
      `The client certificate in the ${placeOf(certificate)} is valid only from ${new Date(start).toISOString()} on. ` +
        `Check this machine's clock.`,
    )
  }
}

const placeOf = (material: Material): string =>
  'file' in material ? `${material.field} (${material.file})` : material.field

const pemCertificate = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]*-----END (?:TRUSTED )?CERTIFICATE-----/g

function certificates(pem: string, material: Material): X509Certificate[] {
  const blocks = pem.match(pemCertificate) ?? []
  try {
    if (blocks.length === 0) throw new Error('no certificate in it')
    return blocks.map((block) => new X509Certificate(block))
  } catch (error) {
    throw new KpngError(
      'invalid',
      `The ${placeOf(material)} holds no usable certificate. It must be PEM with "BEGIN CERTIFICATE".`,
      { cause: error },
    )
  }
}

function parseKey(pem: string, material: Material): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    const encrypted = pem.includes('ENCRYPTED')
    const why = encrypted ? 'it is encrypted; give it without a passphrase' : 'it must be PEM with "BEGIN PRIVATE KEY"'
    // Without a cause: what OpenSSL says of a key belongs nowhere.
    throw new KpngError('invalid', `The ${placeOf(material)} holds no usable private key: ${why}.`)
  }
}
