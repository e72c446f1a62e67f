import { networkInterfaces } from 'node:os'
import { silentLog } from '@kpng/api'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { CertificateAuthority } from '../../core/sinks/api/grpc/testing/certificates.js'
import { serveApi } from '../../core/sinks/api/index.js'
import { syncedStore } from '../../core/testing/objects.js'
import { recordingLog, until } from '../../core/testing/until.js'
import { run } from '../run.js'
import type { TlsFiles } from '../tls.js'
import { addressOf } from './channel-security.js'

// Who is trusted, and what is said when nobody is: real TLS over real sockets.

let authority: CertificateAuthority
let stranger: CertificateAuthority
let mine: Required<TlsFiles>
const warnings: string[] = []
const noteWarning = (warning: Error) => void warnings.push(String(warning))

beforeAll(() => {
  authority = new CertificateAuthority('kpng test CA')
  stranger = new CertificateAuthority('another CA')
  mine = authority.issue('node-1')
  process.on('warning', noteWarning)
})
afterAll(() => {
  authority.remove()
  stranger.remove()
  process.off('warning', noteWarning)
})

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function serve(tls: Required<TlsFiles> | undefined, listen = 'tcp://127.0.0.1:0') {
  const server = await serveApi({ store: syncedStore(), log: silentLog, listen, ...(tls ? { tls } : {}) })
  cleanUps.push(() => server.close(10))
  return server
}

/** Watches a server, and keeps what is said of it. */
function connect(api: string, tls: TlsFiles | undefined) {
  const { lines, log } = recordingLog()
  const stop = new AbortController()
  let calls = 0
  const options = { api, nodeName: 'n', log, signal: stop.signal, errorDelayMs: 20, ...(tls ? { tls } : {}) }
  const done = run(() => void calls++, options)
  cleanUps.push(async () => {
    stop.abort()
    await done
  })
  return { lines, calls: () => calls }
}

const at = (host: string, address: string) => address.replace(/^.*:(\d+)$/, `${host}:$1`)

describe('is trusted', () => {
  const hasIPv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))
  test.each<[string, string, string]>([
    ['127.0.0.1', 'tcp://127.0.0.1:0', 'IP:127.0.0.1'],
    ...(hasIPv6 ? ([['[::1]', 'tcp://[::1]:0', 'IP:::1']] satisfies [string, string, string][]) : []),
    ['localhost', 'tcp://127.0.0.1:0', 'DNS:localhost'],
  ])('%s with a certificate of the authority that names it, without a warning of Node', async (host, listen, names) => {
    const server = await serve(authority.issue('trusted', names), listen)
    const { calls } = connect(at(host, server.address), mine)
    await until('the first call', () => calls() === 1)
    expect(warnings).toEqual([])
  })
})

describe('is not trusted', () => {
  const named = (names: string, subject = 'server') => authority.issue(subject, names)
  const foreign = (names: string) => stranger.issue('server', names)
  test.each<[string, string, () => Required<TlsFiles>, string]>([
    ['a certificate for another address', '127.0.0.1', () => named('IP:127.0.0.2,DNS:localhost'), 'does not name this'],
    ['one for the name that stands for addresses', '127.0.0.1', () => named('DNS:kpng.invalid'), 'does not name this'],
    ['one with the address as a DNS name', '127.0.0.1', () => named('DNS:127.0.0.1'), 'does not name this'],
    ['one with the address in its subject', '127.0.0.1', () => named('DNS:x', '127.0.0.1'), 'does not name this'],
    ['one without any name', '127.0.0.1', () => named('', '127.0.0.1'), 'does not name this'],
    ['one for an address, by name', 'localhost', () => named('IP:127.0.0.1'), 'does not name this address'],
    ["another authority's for the address", '127.0.0.1', () => foreign('IP:127.0.0.1'), 'is not of the authority in'],
    ["another authority's for the name", 'localhost', () => foreign('DNS:localhost'), 'is not of the authority in'],
    ["another authority's for kpng.invalid", '127.0.0.1', () => foreign('DNS:kpng.invalid'), 'is not of the authority'],
  ])('%s', async (_, host, certificate, sentence) => {
    const server = await serve({ ...certificate(), caFile: authority.caFile })
    const { lines, calls } = connect(at(host, server.address), mine)
    await until('three tries', () => server.stats.connectionsAccepted >= 3)
    expect(lines).toEqual([expect.stringContaining(`W No connection; trying again`)])
    expect(lines[0]).toContain(sentence)
    expect({ calls: calls(), started: server.stats.callsStarted }).toEqual({ calls: 0, started: 0 })
  })
})

describe('a server that does not trust the client says why, once', () => {
  test.each<[string, () => TlsFiles | undefined, RegExp]>([
    ['plain text', () => undefined, /It may want TLS\. Give a CA certificate, a certificate for clients and its key/],
    [
      'no certificate',
      () => ({ caFile: authority.caFile }),
      /wants a certificate of this client.*Give a certificate for clients/,
    ],
    [
      "another authority's certificate",
      () => ({ ...stranger.issue('node-2'), caFile: authority.caFile }),
      /may have refused the certificate in .*node-2.crt/,
    ],
  ])('%s', async (_, files, sentence) => {
    const server = await serve(authority.issue('server'))
    const { lines } = connect(server.address, files())
    await until('five tries', () => server.stats.connectionsAccepted >= 5)
    expect(lines).toEqual([expect.stringMatching(sentence)])
    expect(lines[0]).not.toMatch(/Resolution note|openssl/)
  })
})

test('TLS to a server without it', async () => {
  const server = await serve(undefined)
  const { lines } = connect(server.address, mine)
  await until('three tries', () => server.stats.connectionsAccepted >= 3)
  expect(lines).toEqual([expect.stringContaining('The server does not speak TLS at this address.')])
})

test('says when it is connected again, and how many tries that took', async () => {
  const files = authority.issue('server')
  const first = await serve(files)
  const { lines, calls } = connect(first.address, mine)
  await until('the first call', () => calls() === 1)
  await first.close(10)
  await until('a failed try', () => lines.some((line) => line.startsWith('W No connection')))
  await serve(files, first.address)
  await until('it is connected', () => lines.some((line) => /I Connected again .*"failedTries":\d+/.test(line)))
})

test.each([
  ['192.0.2.1:80', '192.0.2.1'],
  ['[2001:db8::1]:80', '2001:db8::1'],
  ['[fe80::1%eth0]:80', 'fe80::1'],
  ['kpng.example:80', undefined],
  ['unix:///run/kpng.sock', undefined],
])('the address in %s', (target, address) => expect(addressOf(target)).toBe(address))
