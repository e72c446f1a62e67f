import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { createAuthority } from './certificates.js'
import { der, integer, objectIdentifier, time } from './der.js'

describe('DER', () => {
  it.each([
    ['a short length', der(0x04, Buffer.alloc(2)), '04020000'],
    ['a two-byte length', der(0x04, Buffer.alloc(0x80)).subarray(0, 3), '048180'],
    ['a three-byte length', der(0x04, Buffer.alloc(0x1234)).subarray(0, 4), '04821234'],
    ['a number with its first bit set', integer(0x80), '02020080'],
    ['a number with needless zeros', integer(Buffer.from([0, 0, 1])), '020101'],
    ['ecdsa-with-SHA256', objectIdentifier('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
    [
      'a year before 2050',
      time(new Date('2049-12-31T23:59:59Z')),
      `170d${Buffer.from('491231235959Z').toString('hex')}`,
    ],
    [
      'a year from 2050 on',
      time(new Date('2050-01-01T00:00:00Z')),
      `180f${Buffer.from('20500101000000Z').toString('hex')}`,
    ],
  ])('writes %s', (_, written, hex) => {
    expect(written.toString('hex')).toBe(hex)
  })
})

describe('the certificate authority', () => {
  const authority = createAuthority('kpng-playground')
  const server = authority.issue('kube-apiserver', ['localhost', 'kubernetes.default.svc', '127.0.0.1', '::1'])

  it('writes what node:crypto reads back', () => {
    const ca = new X509Certificate(authority.certPem)
    const leaf = new X509Certificate(server.certPem)
    expect(ca.ca).toBe(true)
    expect(ca.verify(ca.publicKey)).toBe(true)
    expect(leaf.ca).toBe(false)
    expect(leaf.verify(ca.publicKey)).toBe(true)
    expect(leaf.checkIssued(ca)).toBe(true)
    expect(leaf.checkHost('localhost')).toBe('localhost')
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(leaf.checkIP('::1')).toBe('::1')
    expect(leaf.checkIP('127.0.0.2')).toBeUndefined()
    expect(Date.parse(leaf.validFrom)).toBeLessThan(Date.now())
  })

  it('serves a TLS handshake that is verified', async () => {
    const listener = createServer({ cert: server.certPem, key: server.keyPem }, (socket) => socket.end('hello'))
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    try {
      const port = (listener.address() as AddressInfo).port
      const socket = connect({ host: '127.0.0.1', port, ca: authority.certPem })
      const [data] = await once(socket, 'data')
      expect(String(data)).toBe('hello')
      expect(socket.authorized).toBe(true)
      socket.destroy()
    } finally {
      listener.close()
    }
  })

  it('is not trusted by somebody who has another authority', async () => {
    const listener = createServer({ cert: server.certPem, key: server.keyPem })
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    try {
      const port = (listener.address() as AddressInfo).port
      const socket = connect({ host: '127.0.0.1', port, ca: createAuthority('somebody else').certPem })
      await expect(once(socket, 'secureConnect')).rejects.toThrow(/verify|signature|self-signed/)
    } finally {
      listener.close()
    }
  })
})
