import { renameSync, writeFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Authority, base64, type Pair, temporaryFolder } from '../testing/certificates.js'
import { startSecureApi } from '../testing/secure-api.js'
import { loadConnection } from './connection.js'

const folder = temporaryFolder()
const authority = new Authority()
let server: Pair
let api: Awaited<ReturnType<typeof startSecureApi>>

beforeAll(async () => {
  server = authority.issue('kube-apiserver', { names: 'IP:127.0.0.1,DNS:kubernetes.default' })
  api = await startSecureApi({ cert: server.cert, key: server.key, ca: authority.cert })
})
afterAll(async () => {
  await api.stop()
  authority.remove()
  folder.remove()
})

async function startSecureServer(files: Pair, host: string): Promise<AddressInfo> {
  const secure = createHttps(files, (_, response) => response.setHeader('content-type', 'application/json').end('{}'))
  await new Promise<void>((resolve) => secure.listen(0, host, resolve))
  onTestFinished(() => {
    secure.closeAllConnections()
    secure.close()
  })
  return secure.address() as AddressInfo
}

let files = 0
function kubeconfig(cluster: object, user: object): string {
  const file = join(folder.path, `config${files++}`)
  const content = {
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: api.url, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  }
  writeFileSync(file, JSON.stringify(content))
  return file
}

async function ask(cluster: object, user: object = {}) {
  const connection = await loadConnection({ kubeconfig: kubeconfig(cluster, user), env: {} })
  onTestFinished(() => connection.close())
  const get = async () => {
    const { status, body } = await connection.request({ path: '/version' })
    body.resume()
    await new Promise((resolve) => body.once('end', resolve))
    return { status, seen: api.seen.at(-1) }
  }
  return { get, connection }
}

const inlineCa = () => ({ 'certificate-authority-data': base64(authority.cert) })
const inline = ({ cert, key }: Pair) => ({ 'client-certificate-data': base64(cert), 'client-key-data': base64(key) })

it('trusts the CA of the cluster and shows the certificate of the user', async () => {
  const { get } = await ask(inlineCa(), inline(authority.issue('ada')))
  expect(await get()).toMatchObject({ status: 200, seen: { clientName: 'ada' } })
})

const hasIPv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'))

it.runIf(hasIPv6)('connects to an API server that is known by an IPv6 address', async () => {
  const { cert, key } = authority.issue('kube-apiserver', { names: 'IP:::1' })
  const { port } = await startSecureServer({ cert, key }, '::1')
  const { get } = await ask({ ...inlineCa(), server: `https://[::1]:${port}` })
  expect((await get()).status).toBe(200)
  const { get: refused } = await ask({ ...inlineCa(), server: `https://[::1]:${port}`, 'tls-server-name': 'other' })
  await expect(refused()).rejects.toThrow('other')
})

it('uses certificates from files, also after they were replaced', async () => {
  const paths = { cert: join(folder.path, 'ada.crt'), key: join(folder.path, 'ada.key') }
  writeFileSync(join(folder.path, 'ca.crt'), authority.cert)
  const replace = ({ cert, key }: Pair) => {
    writeFileSync(`${paths.cert}.new`, cert)
    writeFileSync(`${paths.key}.new`, key)
    renameSync(`${paths.cert}.new`, paths.cert)
    renameSync(`${paths.key}.new`, paths.key)
  }
  replace(authority.issue('ada'))
  const { get } = await ask(
    { 'certificate-authority': 'ca.crt' },
    { 'client-certificate': 'ada.crt', 'client-key': 'ada.key' },
  )
  expect((await get()).seen?.clientName).toBe('ada')
  replace(authority.issue('grace'))
  expect((await get()).seen?.clientName).toBe('grace')
})

it('honours tls-server-name and insecure-skip-tls-verify', async () => {
  const named = await ask({ ...inlineCa(), 'tls-server-name': 'kubernetes.default' })
  expect((await named.get()).seen?.serverName).toBe('kubernetes.default')
  const insecure = await ask({ 'insecure-skip-tls-verify': true })
  expect((await insecure.get()).status).toBe(200)
})

it('keeps the path of the server and sends queries', async () => {
  const { connection } = await ask({ server: `${api.url}/k8s/clusters/c-1/`, ...inlineCa() })
  const { body } = await connection.request({ path: '/api/v1/services', query: { labelSelector: '!a,b=c' } })
  body.resume()
  expect(api.seen.at(-1)?.url).toBe('/k8s/clusters/c-1/api/v1/services?labelSelector=%21a%2Cb%3Dc')
})

describe('says what is wrong', () => {
  const failing = async (cluster: object, user: object = {}) => {
    const { get } = await ask(cluster, user)
    return get().then(
      () => 'it worked',
      (error: Error) => error.message,
    )
  }

  it('with an unknown CA', async () => {
    expect(await failing({})).toMatch(
      /no CA that is trusted here signed its certificate\. Check certificate-authority beside the server of cluster "c"/,
    )
  })

  it('with another name', async () => {
    expect(await failing({ ...inlineCa(), 'tls-server-name': 'elsewhere' })).toMatch(
      /is for other names.*set tls-server-name/,
    )
  })

  it('with plain HTTP on the port', async () => {
    const plain = createHttp((_, response) => response.end('hello'))
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void plain.close())
    const { port } = plain.address() as AddressInfo
    expect(await failing({ server: `https://127.0.0.1:${port}` })).toMatch(
      /does not speak TLS on this port. Check the server of cluster/,
    )
  })

  it('with HTTPS where http was written', async () => {
    const go = createTcp((socket) => {
      const text = 'Client sent an HTTP request to an HTTPS server.\n'
      // A socket whose bytes nobody reads never closes.
      socket
        .resume()
        .end(`HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
    })
    await new Promise<void>((resolve) => go.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void go.close())
    const { port } = go.address() as AddressInfo
    expect(await failing({ server: `http://127.0.0.1:${port}` })).toMatch(/write https:\/\//)
    expect(await failing({ server: api.url.replace('https', 'http') })).toMatch(/write https:\/\//)
  })

  it('with an expired server', async () => {
    const old = authority.issue('old', { names: 'IP:127.0.0.1', days: -1 })
    const expired = await startSecureApi(old)
    onTestFinished(expired.stop)
    expect(await failing({ server: expired.url, ...inlineCa() })).toMatch(/its certificate has expired/)
  })

  const loading = async (user: object, cluster: object = inlineCa()) =>
    loadConnection({ kubeconfig: kubeconfig(cluster, user), env: {} }).then(
      () => 'it worked',
      (error: Error) => error.message,
    )

  it('with an expired certificate, and when it expired', async () => {
    const pair = authority.issue('ada', { days: -1 })
    expect(await loading(inline(pair))).toMatch(
      /client-certificate-data of user "u" in .* expired at 20\d\d-\d\d-\d\dT/,
    )
  })

  it('with a key of another certificate, or what is none', async () => {
    const mixed = { ...inline(authority.issue('ada')), 'client-key-data': base64(authority.issue('eve').key) }
    expect(await loading(mixed)).toMatch(/client-key-data of user "u".*does not belong to the client-certificate-data/)
    expect(await loading({ ...mixed, 'client-key-data': base64('none') })).toMatch(/is not a usable private key/)
    expect(await loading({ ...mixed, 'client-certificate-data': base64('none') })).toMatch(
      /is not a usable certificate/,
    )
    expect(await loading({}, { 'certificate-authority-data': base64('none') })).toMatch(
      /certificate-authority-data of cluster "c".*is not a usable certificate/,
    )
  })

  it('with a file that is not there', async () => {
    expect(await loading({ 'client-certificate': 'no.crt', 'client-key': 'no.key' })).toMatch(
      /Cannot read .*no\.(crt|key), the client-/,
    )
  })
})
