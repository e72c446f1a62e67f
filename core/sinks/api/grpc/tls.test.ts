import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../../testing/until.js'
import type { Call } from './call.js'
import { frame } from './frames.js'
import { Status } from './status.js'
import { CertificateAuthority, readPem } from './testing/certificates.js'
import { afterTest, connect, startServer, temporaryFolder } from './testing/server.js'
import { loadTls, type TlsFiles, tlsFilesOf } from './tls.js'

let authority: CertificateAuthority
let stranger: CertificateAuthority
let serverFiles: TlsFiles
let clientFiles: TlsFiles
let strangersFiles: TlsFiles

beforeAll(() => {
  authority = new CertificateAuthority('kpng test CA')
  stranger = new CertificateAuthority('another CA')
  serverFiles = authority.issue('server')
  clientFiles = authority.issue('node-1')
  strangersFiles = stranger.issue('stranger')
})

afterAll(() => {
  authority.remove()
  stranger.remove()
})

const answerSubject = async (call: Call) => call.write(frame(Buffer.from(call.peer.subject ?? 'none')))
const handlers = { '/t/Subject': answerSubject }

const secrets = (files: TlsFiles) => {
  const { key, cert, ca } = readPem(files)
  return credentials.createSsl(ca, key, cert)
}

const goodClientWorks = async (target: string) => {
  const subject = await connect(target, secrets(clientFiles)).unary('/t/Subject', Buffer.alloc(0))
  expect(subject?.toString()).toBe('O=kpng,CN=node-1')
}

describe('mutual TLS', () => {
  it('serves a client with a certificate of the CA and tells its subject', async () => {
    const server = await startServer(handlers, { tls: serverFiles })
    await goodClientWorks(server.target)
    expect(server.stats.faults).toEqual({ protocol: 0, tls: 0, slow: 0, dead: 0, flood: 0, full: 0, crowd: 0 })
  })

  it('works over a unix socket too', async () => {
    const path = join(temporaryFolder(), 'tls.sock')
    await startServer(handlers, { tls: serverFiles, address: `unix://${path}` })
    const { key, cert, ca } = readPem(clientFiles)
    const socket = connectTls({ path, key, cert, ca, ALPNProtocols: ['h2'], servername: 'localhost' })
    afterTest(() => socket.destroy())
    await once(socket, 'secureConnect')
    expect(socket.alpnProtocol).toBe('h2')
  })

  it('refuses TLS 1.1 and takes 1.2', async () => {
    const server = await startServer(handlers, { tls: serverFiles })
    const versions = async (version: 'TLSv1.1' | 'TLSv1.2') => {
      const options = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' } as const
      const socket = connectTls({ port: server.port, ...readPem(clientFiles), ...options, ALPNProtocols: ['h2'] })
      afterTest(() => socket.destroy())
      return Promise.race([
        once(socket, 'secureConnect').then(() => socket.getProtocol()),
        new Promise((resolve) => socket.once('error', () => resolve('refused'))),
      ])
    }
    expect(await versions('TLSv1.2')).toBe('TLSv1.2')
    expect(await versions('TLSv1.1')).toBe('refused')
  })

  it('refuses a grpc-js client with the certificate of another CA', async () => {
    const server = await startServer(handlers, { tls: serverFiles })
    const wrong = connect(server.target, secrets({ ...strangersFiles, caFile: authority.caFile }))
    await expect(wrong.unary('/t/Subject', Buffer.alloc(0), { deadline: Date.now() + 2000 })).rejects.toMatchObject({
      code: expect.toSatisfy((code: number) => code === Status.UNAVAILABLE || code === Status.DEADLINE_EXCEEDED),
    })
    expect(server.stats.callsStarted).toBe(0)
    expect(server.stats.faults.tls).toBeGreaterThan(0)
  })

  const tlsTo = (port: number, files: Partial<TlsFiles>, alpn: string[] | undefined): TLSSocket => {
    const pem = readPem({ ...clientFiles, ...files })
    return connectTls({ port, host: '127.0.0.1', ...pem, ...(alpn ? { ALPNProtocols: alpn } : {}) })
  }
  const withoutCertificate = (port: number) => connectTls({ port, ca: readPem(clientFiles).ca, ALPNProtocols: ['h2'] })
  const refusals: Record<string, [(port: number) => Socket, 'tls' | 'protocol', RegExp]> = {
    'no certificate': [withoutCertificate, 'tls', /the client gave no certificate \(peer did not return/],
    'the certificate of another CA': [
      (port) => tlsTo(port, { ...strangersFiles, caFile: authority.caFile }, ['h2']),
      'tls',
      /the client's certificate was refused: \w+/,
    ],
    'plain HTTP/1': [
      (port) => {
        const socket = connectTcp({ port, host: '127.0.0.1' }, () => socket.write('GET / HTTP/1.1\r\n\r\n'))
        return socket
      },
      'tls',
      /the client does not use TLS \(http request\)/,
    ],
    'plain HTTP/2': [
      (port) => {
        const socket = connectTcp({ port, host: '127.0.0.1' }, () => socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
        return socket
      },
      'tls',
      /the client does not use TLS \(wrong version number\)/,
    ],
    'another ALPN': [(port) => tlsTo(port, {}, ['http/1.1']), 'tls', /no application protocol/],
    'no ALPN': [(port) => tlsTo(port, {}, undefined), 'protocol', /did not ask for h2/],
  }
  for (const [what, [go, kind, reason]] of Object.entries(refusals)) {
    it(`closes, counts and logs with its address a client with ${what}`, async () => {
      const server = await startServer(handlers, { tls: serverFiles })
      const socket = go(server.port)
      let address = ''
      socket.on('error', () => {})
      socket.on('connect', () => {
        address = `:${socket.localPort}"`
      })
      socket.resume()
      await new Promise((resolve) => socket.on('close', resolve))
      await until('it is counted', () => server.stats.faults[kind] === 1)
      const warning = server.log.lines.find((line) => line.startsWith('W ')) ?? ''
      expect(warning).toContain(address)
      expect(address).not.toBe('')
      expect(warning).toMatch(reason)
      await goodClientWorks(server.target)
      await until('nothing but the good client is left', () => server.stats.connections === 1)
    })
  }

  it('closes a connection that never begins, before TLS or after it', async () => {
    const server = await startServer(handlers, { tls: serverFiles, limits: { setupTimeoutMs: 150 } })
    const silent = connectTcp(server.port, '127.0.0.1')
    const secured = tlsTo(server.port, {}, ['h2'])
    for (const socket of [silent, secured]) socket.on('error', () => {}).resume()
    await Promise.all([silent, secured].map((socket) => new Promise((resolve) => socket.on('close', resolve))))
    expect(server.stats.faults.slow).toBe(2)
    expect(server.log.lines.join('\n')).toContain('never made a gRPC call')
  })

  it('stops within the grace time when a client hangs in the handshake', async () => {
    const server = await startServer(handlers, { tls: serverFiles })
    connectTcp(server.port, '127.0.0.1').on('error', () => {})
    await until('it is there', () => server.stats.connections === 1)
    await server.close(50)
    expect(server.stats.connections).toBe(0)
  })
})

describe('rotation', () => {
  it('uses renewed files for new connections, and keeps the old ones while the new are broken', async () => {
    const folder = temporaryFolder()
    const files = {
      keyFile: join(folder, 'tls.key'),
      certFile: join(folder, 'tls.crt'),
      caFile: join(folder, 'ca.crt'),
    }
    const install = ({ keyFile, certFile, caFile }: TlsFiles) => {
      copyFileSync(keyFile, files.keyFile)
      copyFileSync(certFile, files.certFile)
      copyFileSync(caFile, files.caFile)
    }
    install(serverFiles)
    const server = await startServer(handlers, { tls: files, limits: { tlsReloadMs: 20 } })
    await goodClientWorks(server.target)

    writeFileSync(files.certFile, 'half a cert')
    await until('the fault is told', () => server.log.lines.some((line) => /^W .*old certificates stay/.test(line)))
    await goodClientWorks(server.target)

    install(strangersFiles)
    await until('the renewal is told', () =>
      server.log.lines.some((line) => line.startsWith('I TLS certificates were renewed')),
    )
    const renewed = connect(server.target, secrets(strangersFiles))
    expect((await renewed.unary('/t/Subject', Buffer.alloc(0)))?.toString()).toBe('O=kpng,CN=stranger')
    const old = connect(server.target, secrets(clientFiles))
    await expect(old.unary('/t/Subject', Buffer.alloc(0), { deadline: Date.now() + 500 })).rejects.toBeDefined()
  })
})

describe('the files', () => {
  it('are three or none', () => {
    expect(tlsFilesOf({})).toBeUndefined()
    expect(tlsFilesOf({ keyFile: '', certFile: '', caFile: '' })).toBeUndefined()
    expect(tlsFilesOf(serverFiles)).toEqual(serverFiles)
    const partly = (given: Partial<TlsFiles>) => {
      try {
        tlsFilesOf(given)
      } catch (error) {
        return error
      }
    }
    expect(partly({ certFile: 'c', caFile: 'a' })).toMatchObject({
      code: 'usage',
      message: /Give the key too/,
    })
    expect(partly({ keyFile: 'k', caFile: 'a' })).toMatchObject({ code: 'usage', message: /Give the certificate too/ })
    expect(partly({ keyFile: 'k' })).toMatchObject({ message: /Give the certificate and the CA certificate too/ })
  })

  it('are named when they cannot be used', async () => {
    const folder = temporaryFolder()
    const noPem = join(folder, 'no.pem')
    writeFileSync(noPem, 'hello')
    const missing = join(folder, 'missing.pem')
    const sentence = (files: Partial<TlsFiles>) =>
      loadTls({ ...serverFiles, ...files }).then(
        () => 'fine',
        (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
      )
    expect(await sentence({})).toBe('fine')
    expect(await sentence({ keyFile: missing })).toMatch(`unavailable: Cannot read the TLS file ${missing}`)
    for (const name of ['keyFile', 'certFile', 'caFile'] as const)
      expect(await sentence({ [name]: noPem }), name).toMatch(`invalid: The file ${noPem} holds no usable`)
    expect(await sentence({ keyFile: clientFiles.keyFile })).toMatch(
      `invalid: The key in ${clientFiles.keyFile} does not belong to the certificate in ${serverFiles.certFile}`,
    )
    expect(await sentence({ certFile: serverFiles.keyFile })).toContain('holds no usable certificate')
  })

  it('stop the server from starting when they are bad', async () => {
    await expect(startServer(handlers, { tls: { keyFile: serverFiles.keyFile } })).rejects.toMatchObject({
      code: 'usage',
    })
  })
})
