import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { parseCertificates, parsePrivateKey, tlsProblemOf } from './tls.js'

const openssl = (reason: string) =>
  `80BC69EAFA7F0000:error:0A00010B:SSL routines:ssl3_read_bytes:${reason}:../deps/openssl/openssl/ssl/record/x.c:350:\n`

describe('why TLS failed', () => {
  it.each([
    ['self-signed certificate in certificate chain', 'SELF_SIGNED_CERT_IN_CHAIN', { kind: 'untrusted' }],
    ['unable to verify the first certificate', '', { kind: 'untrusted' }],
    ['x', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', { kind: 'untrusted' }],
    ['certificate signature failure', '', { kind: 'untrusted' }],
    [
      "Hostname/IP does not match certificate's altnames: IP: 127.0.0.2 is not in the cert's list: 127.0.0.1",
      'ERR_TLS_CERT_ALTNAME_INVALID',
      { kind: 'other names', names: "IP: 127.0.0.2 is not in the cert's list: 127.0.0.1" },
    ],
    ['certificate has expired', '', { kind: 'expired' }],
    ['x', 'CERT_HAS_EXPIRED', { kind: 'expired' }],
    ['certificate is not yet valid', '', { kind: 'not yet valid' }],
    [openssl('wrong version number'), '', { kind: 'no TLS' }],
    ['x', 'ERR_SSL_WRONG_VERSION_NUMBER', { kind: 'no TLS' }],
    ['x', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', { kind: 'no TLS' }],
    [openssl('tlsv1 alert unknown ca'), '', { kind: 'alert', alert: 'unknown ca' }],
    [openssl('tlsv13 alert certificate required'), '', { kind: 'alert', alert: 'certificate required' }],
    ['x', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', { kind: 'alert', alert: 'certificate required' }],
    ['connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED', undefined],
  ])('%j %s', (message, code, problem) => expect(tlsProblemOf(message, code)).toEqual(problem))
})

describe('PEM', () => {
  const options = { namedCurve: 'prime256v1', publicKeyEncoding: { type: 'spki', format: 'pem' } } as const
  const plain = { type: 'pkcs8', format: 'pem' } as const

  it('a private key, also an encrypted one that cannot be used', () => {
    const { privateKey } = generateKeyPairSync('ec', { ...options, privateKeyEncoding: plain })
    expect(parsePrivateKey(privateKey).type).toBe('private')
    const locked = { ...plain, cipher: 'aes-256-cbc', passphrase: 'x' } as const
    const { privateKey: encrypted } = generateKeyPairSync('ec', { ...options, privateKeyEncoding: locked })
    expect(() => parsePrivateKey(encrypted)).toThrow('it is encrypted')
    expect(() => parsePrivateKey('hidden')).toThrow(new Error('it must be PEM with "BEGIN PRIVATE KEY"'))
  })

  it.each(['', 'hidden', '-----BEGIN CERTIFICATE-----\nhidden\n-----END CERTIFICATE-----'])(
    'not a certificate: %j',
    (text) => expect(() => parseCertificates(text)).toThrow(new Error('it must be PEM with "BEGIN CERTIFICATE"')),
  )
})
