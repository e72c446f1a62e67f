import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { Authority, base64, temporaryFolder } from '../testing/certificates.js'
import { startSecureApi } from '../testing/secure-api.js'
import type { ClusterConfig } from './config.js'
import { loadConnection } from './connection.js'
import { proxyOf } from './transport.js'

const folder = temporaryFolder()
const authority = new Authority()
afterAll(() => {
  folder.remove()
  authority.remove()
})

async function startProxy(status = 200) {
  const asked: { target: string | undefined; authorization: string | undefined }[] = []
  const server = createServer()
  server.on('connect', (request, socket) => {
    asked.push({ target: request.url, authorization: request.headers['proxy-authorization'] })
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\n\r\n`)
      return
    }
    const [host, port] = (request.url ?? '').split(':')
    const upstream = connectTcp(Number(port), host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('error', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, host: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function connect(proxyUrl: string) {
  const pair = authority.issue('kube-apiserver', { names: 'IP:127.0.0.1' })
  const api = await startSecureApi({ ...pair, ca: authority.cert })
  onTestFinished(api.stop)
  const client = authority.issue('ada')
  const cluster = { server: api.url, 'certificate-authority-data': base64(authority.cert), 'proxy-url': proxyUrl }
  const user = { 'client-certificate-data': base64(client.cert), 'client-key-data': base64(client.key) }
  const file = join(folder.path, 'config')
  const content = {
    'current-context': 'x',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  }
  writeFileSync(file, JSON.stringify(content))
  const connection = await loadConnection({ kubeconfig: file, env: {} })
  onTestFinished(() => connection.close())
  return { api, connection }
}

it('goes through proxy-url, with its credentials, and is still itself to the server', async () => {
  const proxy = await startProxy()
  const { api, connection } = await connect(`http://user:pa%20ss@${proxy.host}`)
  const { status, body } = await connection.request({ path: '/version' })
  body.resume()
  expect(status).toBe(200)
  expect(proxy.asked).toEqual([
    { target: new URL(api.url).host, authorization: `Basic ${Buffer.from('user:pa ss').toString('base64')}` },
  ])
  expect(api.seen[0]?.clientName).toBe('ada')
})

it('says that it was the proxy that refused', async () => {
  const proxy = await startProxy(407)
  const { connection } = await connect(`http://user:hidden@${proxy.host}`)
  const error = await connection.request({ path: '/version' }).catch((caught: Error) => caught)
  expect((error as Error).message).toMatch(/the proxy answered 407. Check proxy-url/)
  expect((error as Error).message).not.toContain('hidden')
})

it.each([
  ['socks5://127.0.0.1:1080', /is a SOCKS proxy, which kpng cannot use/],
  ['nonsense', /is not a URL of an http or https proxy/],
])('refuses %s', async (proxyUrl, message) => {
  await expect(connect(proxyUrl)).rejects.toThrow(message)
})

describe('without proxy-url, the environment decides', () => {
  const proxy = 'http://proxy:3128'
  const of = (server: string, env: NodeJS.ProcessEnv) =>
    proxyOf({ server, serverField: 'server' } as ClusterConfig, env)?.origin

  it.each([
    ['https://host', { HTTPS_PROXY: proxy }, proxy],
    ['https://host', { https_proxy: 'proxy:3128' }, proxy],
    ['http://host', { HTTPS_PROXY: proxy }, undefined],
    ['http://host', { HTTP_PROXY: proxy }, proxy],
    ['https://127.0.0.1:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://localhost:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://[::1]:6443', { HTTPS_PROXY: proxy }, undefined],
    ['https://10.96.0.1', { HTTPS_PROXY: proxy, NO_PROXY: '10.96.0.0/12' }, undefined],
    ['https://10.1.0.1', { HTTPS_PROXY: proxy, NO_PROXY: '10.96.0.0/12,x' }, proxy],
    ['https://[fd00::1]', { HTTPS_PROXY: proxy, NO_PROXY: 'fd00::/8' }, undefined],
    ['https://10.96.0.1', { HTTPS_PROXY: proxy, no_proxy: '10.96.0.1' }, undefined],
    ['https://api.example.com', { HTTPS_PROXY: proxy, NO_PROXY: 'example.com' }, undefined],
    ['https://api.example.com', { HTTPS_PROXY: proxy, NO_PROXY: ' .example.com ' }, undefined],
    ['https://example.com', { HTTPS_PROXY: proxy, NO_PROXY: '.example.com' }, proxy],
    ['https://badexample.com', { HTTPS_PROXY: proxy, NO_PROXY: 'example.com' }, proxy],
    ['https://host:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'host:6443' }, undefined],
    ['https://host:6443', { HTTPS_PROXY: proxy, NO_PROXY: 'host:443' }, proxy],
    ['https://host', { HTTPS_PROXY: proxy, NO_PROXY: '*' }, undefined],
  ])('%s with %j: %s', (server, env, expected) => expect(of(server, env)).toBe(expected))
})
