import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request as plainRequest, type RequestOptions } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CertificateAuthority, readPem } from '../../core/sinks/api/grpc/testing/certificates.js'
import { recordingLog } from '../../core/testing/until.js'
import { serveOnSocket } from '../agent-api/index.js'
import { readEvents } from '../testing/event-reader.js'
import { type DashboardOptions, forwardTo, pageFilesIn, startDashboard } from './index.js'

let folder: string
const ends: (() => unknown)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-dashboard-'))
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
  await rm(folder, { recursive: true, force: true })
})

const page = `<!doctype html><title>kpng</title>${'<p>text</p>'.repeat(100)}`

/** A dashboard with a page of three files. */
async function started(options: Partial<DashboardOptions> = {}) {
  const dist = join(folder, 'dist')
  await mkdir(dist, { recursive: true })
  await writeFile(join(dist, 'index.html'), page)
  await writeFile(join(dist, 'main-8F3A2B1C.js'), 'let x = 1\n'.repeat(50))
  await writeFile(join(dist, 'secret.txt'), 'not a file of the page')
  const { lines, log } = recordingLog()
  const dashboard = await startDashboard({
    address: '127.0.0.1:0',
    handler: (request, response) => response.end(`asked ${request.url}`),
    files: () => pageFilesIn(dist),
    log,
    ...options,
  })
  ends.push(() => dashboard.close())
  const { url } = dashboard
  return { url, lines, get: (path: string, more?: RequestOptions) => get(new URL(path, url), more) }
}

interface Answer {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Not `fetch`, which sends no Host that one chooses. */
function get(url: URL, options: RequestOptions & { readonly ca?: Buffer } = {}): Promise<Answer> {
  const ask = url.protocol === 'https:' ? tlsRequest : plainRequest
  return new Promise((resolve, reject) => {
    const asked = ask(url, { agent: false, ...options }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    asked.on('error', reject)
    asked.end()
  })
}

describe('the page', () => {
  test('is served with a policy that allows nothing from elsewhere', async () => {
    const { get } = await started()
    const { status, headers, body } = await get('/')
    expect([status, body.toString()]).toEqual([200, page])
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
    expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self'")
    expect(headers['content-security-policy']).not.toContain('unsafe')
  })

  test('is compressed and cached: for ever if its name has a hash', async () => {
    const { get } = await started()
    const { headers, body } = await get('/main-8F3A2B1C.js', { headers: { 'accept-encoding': 'gzip' } })
    expect(headers['cache-control']).toContain('immutable')
    expect(gunzipSync(body).toString()).toContain('let x = 1')
    const { etag } = (await get('/')).headers
    expect(await get('/', { headers: { 'if-none-match': String(etag) } })).toMatchObject({
      status: 304,
      body: Buffer.alloc(0),
    })
  })

  test.each(['/secret.txt', '/../dashboard.test.ts', '/%2e%2e/x', '/other'])('has no %s', async (path) => {
    const { get } = await started()
    expect(await get('/', { path })).toMatchObject({ status: 404 })
  })

  test('that was not built is a sentence, until it is built', async () => {
    const { get } = await started({ files: () => pageFilesIn(join(folder, 'later')) })
    const { status, body } = await get('/')
    expect(status).toBe(503)
    expect(body.toString()).toMatch(/^The live page is not part of this kpng/)
    expect((await get('/v1/status')).body.toString()).toBe('asked /v1/status')
    await mkdir(join(folder, 'later'))
    await writeFile(join(folder, 'later', 'index.html'), page)
    expect(await get('/')).toMatchObject({ status: 200 })
  })

  test('cannot be changed', async () => {
    const { get } = await started()
    expect(await get('/', { method: 'POST' })).toMatchObject({ status: 405 })
  })
})

describe('requests of other sites are refused', () => {
  test.each<[number, Readonly<Record<string, string>>]>([
    [403, { host: 'attacker.example' }],
    [403, { host: 'x.svc.cluster.local' }],
    [403, { origin: 'https://attacker.example' }],
    [403, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    [200, { host: 'localhost:1' }],
    [200, { host: '[::1]:1' }],
    [200, { 'sec-fetch-site': 'same-origin' }],
    [200, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
  ])('%i for %j', async (status, headers) => {
    const { get } = await started()
    for (const path of ['/', '/v1/status']) expect(await get(path, { headers })).toMatchObject({ status })
  })
})

describe('the address', () => {
  test.each(['0.0.0.0:0', '[::]:0', '192.0.2.1:0'])('%s needs a token and TLS', async (address) => {
    await expect(started({ address })).rejects.toThrow(
      /can be reached from other machines. Give --dashboard-token-file, --dashboard-tls-crt and --dashboard-tls-key/,
    )
  })
  test.each(['12080', 'example.com:80', '127.0.0.1:99999', '127.0.0.1:x'])('%s is not one', async (address) => {
    await expect(started({ address })).rejects.toThrow('--dashboard takes an IP address and a port')
  })
  test('that is taken: the next free one is used and named', async () => {
    const first = createServer()
    await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve))
    ends.push(() => first.close())
    const { port } = first.address() as AddressInfo
    const { url, lines, get } = await started({ address: `127.0.0.1:${port}` })
    const got = Number(new URL(url).port)
    expect(got).toBeGreaterThan(port)
    expect(got).toBeLessThanOrEqual(port + 20)
    expect(lines.join('\n')).toContain(`port ${port} is in use`)
    expect(await get('/')).toMatchObject({ status: 200 })
  })
})

describe('with a token', () => {
  const token = '0123456789abcdef0123'
  let authority: CertificateAuthority
  beforeEach(() => {
    authority = new CertificateAuthority()
    ends.push(() => authority.remove())
  })
  const secured = async (address = '127.0.0.1:0') => {
    const tls = authority.issue('dashboard')
    const tokenFile = join(folder, 'token')
    await writeFile(tokenFile, `${token}\n`)
    const running = await started({ address, tls, tokenFile })
    const { ca } = readPem(tls)
    return { ...running, get: (path: string, headers = {}) => running.get(path, { ca, headers } as RequestOptions) }
  }

  test('nobody is answered without it', async () => {
    const { get } = await secured()
    const cases = [
      {},
      { authorization: 'Bearer wrong' },
      { cookie: 'kpng-dashboard=wrong' },
      { cookie: `kpng-dashboard=${token}` },
    ]
    for (const headers of cases) {
      for (const path of [
        '/',
        '/v1/status',
        '/v1/stream',
        '/main-8F3A2B1C.js',
        '/?token=wrong',
        `/v1/status?token=${token}`,
      ])
        expect(await get(path, headers)).toMatchObject({ status: 401 })
    }
  })

  test('a header or a login opens it', async () => {
    const { get, url } = await secured()
    expect(url).toMatch(/^https:/)
    expect(await get('/v1/status', { authorization: `Bearer ${token}` })).toMatchObject({ status: 200 })
    const login = await get(`/?token=${token}`)
    expect(login).toMatchObject({ status: 303, headers: { location: '/' } })
    const [cookie = ''] = login.headers['set-cookie'] as string[]
    expect(cookie).toMatch(/; HttpOnly; Secure; SameSite=Lax/)
    expect(cookie).not.toContain(token)
    const value = cookie.split(';')[0] as string
    expect(await get('/v1/status', { cookie: `a=b; ${value}` })).toMatchObject({ status: 200 })
  })

  test('every address may be used', async () => {
    const { url } = await secured('0.0.0.0:0')
    const { port } = new URL(url)
    const ca = readPem(authority.issue('other')).ca
    const headers = { authorization: `Bearer ${token}` }
    const asked = get(new URL(`https://127.0.0.1:${port}/`), { ca, headers } as RequestOptions)
    expect(await asked).toMatchObject({ status: 200 })
  })

  test('it must not go in plain text, and must be long', async () => {
    const tokenFile = join(folder, 'short')
    await writeFile(tokenFile, 'short')
    await expect(started({ tokenFile })).rejects.toThrow('must not be sent in plain text')
    const tls = authority.issue('dashboard')
    await expect(started({ tokenFile, tls })).rejects.toThrow('at least 16 characters')
    await expect(started({ tokenFile: join(folder, 'none'), tls })).rejects.toThrow('cannot be read')
    await expect(started({ tokenFile, tls: { ...tls, keyFile: tokenFile } })).rejects.toThrow()
  })
})

test('an agent in another process answers through its socket, event by event', async () => {
  const socketPath = join(folder, 'agent.sock')
  const socket = await serveOnSocket(socketPath, (request, response) => {
    if (request.url !== '/v1/stream') return void response.writeHead(404).end(`no ${request.url}`)
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(`id: x.1\nevent: pulse\ndata: ${JSON.stringify(request.headers['last-event-id'])}\n\n`)
  })
  ends.push(() => socket.close())
  const { get, url } = await started({ handler: forwardTo(socketPath) })
  expect(await get('/v1/other')).toMatchObject({ status: 404, body: Buffer.from('no /v1/other') })
  const { port } = new URL(url)
  const reader = readEvents<string>({
    host: '127.0.0.1',
    port,
    path: '/v1/stream',
    headers: { 'last-event-id': 'a.7' },
  })
  await expect.poll(() => reader.events, { timeout: 90_000 }).toEqual([{ id: 'x.1', event: 'pulse', data: 'a.7' }])
  reader.end()
  await socket.close()
  expect(await get('/v1/status')).toMatchObject({ status: 502 })
})
