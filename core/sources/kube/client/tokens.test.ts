import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../testing/certificates.js'
import { loadConnection } from './connection.js'

const folder = temporaryFolder()
afterAll(folder.remove)

/** A server that takes one Authorization header and refuses all others. */
async function startApi(accepts: (authorization: string | undefined) => boolean = () => true) {
  const seen: (string | undefined)[] = []
  const headers: Record<string, unknown>[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    headers.push(request.headers)
    const ok = accepts(request.headers.authorization)
    response.writeHead(ok ? 200 : 401, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { seen, headers, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
}

function write(name: string, text: string): string {
  writeFileSync(join(folder.path, name), text)
  return join(folder.path, name)
}

const kubeconfig = (server: string, user: object) =>
  write(
    'config',
    JSON.stringify({
      'current-context': 'x',
      clusters: [{ name: 'c', cluster: { server } }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    }),
  )

async function connect(server: string, user: object) {
  const connection = await loadConnection({ kubeconfig: kubeconfig(server, user), env: {} })
  onTestFinished(() => connection.close())
  return async () => {
    const { status, body } = await connection.request({ path: '/version' })
    body.resume()
    return status
  }
}

it.each([
  [{ token: 'abc' }, 'Bearer abc'],
  [{ username: 'ada', password: 'p:w' }, `Basic ${Buffer.from('ada:p:w').toString('base64')}`],
  [{}, undefined],
])('sends who asks: %j', async (user, authorization) => {
  const api = await startApi()
  await (await connect(api.url, user))()
  expect(api.seen).toEqual([authorization])
})

it('impersonates', async () => {
  const api = await startApi()
  await (await connect(api.url, { token: 'abc', as: 'ada', 'as-groups': ['a', 'b'], 'as-uid': '7' }))()
  expect(api.headers[0]).toMatchObject({
    'impersonate-user': 'ada',
    'impersonate-uid': '7',
    'impersonate-group': 'a, b',
  })
})

it('reads a token file for each request, and prefers it', async () => {
  const api = await startApi()
  write('token', 'one\n')
  const get = await connect(api.url, { tokenFile: 'token', token: 'never' })
  await get()
  write('token', 'two\n')
  await get()
  expect(api.seen).toEqual(['Bearer one', 'Bearer two'])
})

it('reads the kubeconfig again after 401, and tries once more', async () => {
  const api = await startApi((authorization) => authorization === 'Bearer new')
  const get = await connect(api.url, { token: 'old' })
  kubeconfig(api.url, { token: 'new' })
  expect(await get()).toBe(200)
  expect(await get()).toBe(200)
  expect(api.seen).toEqual(['Bearer old', 'Bearer new', 'Bearer new'])
})

it('hands a second 401 on', async () => {
  const api = await startApi(() => false)
  const get = await connect(api.url, { token: 'bad' })
  expect(await get()).toBe(401)
  expect(api.seen).toHaveLength(2)
})

it.each([
  ['', /tokenFile of user "u" in .* is an empty file/],
  ['two words of hidden', /contains spaces or control characters/],
])('explains a token file with %j, and gives nothing away', async (text, message) => {
  write('token', text)
  const error = await connect('http://127.0.0.1:1', { tokenFile: 'token' }).catch((caught: Error) => caught)
  expect((error as Error).message).toMatch(message)
  expect((error as Error).message).not.toContain('hidden')
})
