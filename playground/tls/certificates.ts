import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { bytesOfIp } from '@kpng/api'
import {
  bits,
  boolean,
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octets,
  pem,
  sequence,
  set,
  time,
  utf8,
} from './der.js'

export interface Certificate {
  certPem: string
  keyPem: string
}

export interface Authority extends Certificate {
  /** A certificate for a server that answers under these names and addresses. */
  issue(commonName: string, names: readonly string[]): Certificate
}

const ecdsaWithSha256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'))
const distinguishedName = (commonName: string): Buffer =>
  sequence(set(sequence(objectIdentifier('2.5.4.3'), utf8(commonName))))

const extension = (id: string, critical: boolean, value: Buffer): Buffer =>
  sequence(objectIdentifier(id), ...(critical ? [boolean(true)] : []), octets(value))

const keyIdentifier = (publicKey: Buffer): Buffer => createHash('sha1').update(publicKey).digest()

function subjectAlternativeName(names: readonly string[]): Buffer {
  const general = names.map((name) => {
    const ip = bytesOfIp(name)
    return ip ? implicit(7, Buffer.from(ip)) : implicit(2, Buffer.from(name))
  })
  return sequence(...general)
}

interface Request {
  subject: string
  issuer: string
  publicKey: KeyObject
  signingKey: KeyObject
  extensions: readonly Buffer[]
  validDays: number
}

function certificate(request: Request): string {
  const now = Date.now()
  // A clock that is a little behind must not find the certificate "not yet valid".
  const from = new Date(now - 60 * 60 * 1000)
  const until = new Date(now + request.validDays * 24 * 60 * 60 * 1000)
  // A cleared first bit keeps the serial number positive, a set second one keeps its length fixed.
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const body = sequence(
    explicit(0, integer(2)),
    integer(serial),
    ecdsaWithSha256,
    distinguishedName(request.issuer),
    sequence(time(from), time(until)),
    distinguishedName(request.subject),
    request.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...request.extensions)),
  )
  return pem('CERTIFICATE', sequence(body, ecdsaWithSha256, bits(sign('sha256', body, request.signingKey))))
}

const keyPem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** A certificate authority of our own: P-256, valid for ten years, kept only where the caller keeps it. */
export function createAuthority(commonName: string): Authority {
  const keys = newKeys()
  const publicDer = keys.publicKey.export({ type: 'spki', format: 'der' })
  const identifier = keyIdentifier(publicDer)
  const certPem = certificate({
    subject: commonName,
    issuer: commonName,
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    validDays: 3650,
    extensions: [
      extension('2.5.29.19', true, sequence(boolean(true))),
      // keyCertSign and cRLSign: bits 5 and 6, one unused bit at the end.
      extension('2.5.29.15', true, bits(Buffer.from([0x06]), 1)),
      extension('2.5.29.14', false, octets(identifier)),
    ],
  })
  const issue = (subject: string, names: readonly string[]): Certificate => {
    const own = newKeys()
    const extensions = [
      extension('2.5.29.19', true, sequence()),
      // digitalSignature: bit 0, seven unused bits.
      extension('2.5.29.15', true, bits(Buffer.from([0x80]), 7)),
      extension('2.5.29.37', false, sequence(objectIdentifier('1.3.6.1.5.5.7.3.1'))),
      extension('2.5.29.35', false, sequence(implicit(0, identifier))),
      extension('2.5.29.17', false, subjectAlternativeName(names)),
    ]
    const request = { subject, issuer: commonName, publicKey: own.publicKey, signingKey: keys.privateKey }
    return { certPem: certificate({ ...request, extensions, validDays: 825 }), keyPem: keyPem(own.privateKey) }
  }
  return { certPem, keyPem: keyPem(keys.privateKey), issue }
}
