import { silentLog } from '@kpng/api'
import { afterEach, expect, test } from 'vitest'
import { listen } from '../../core/sinks/api/grpc/index.js'
import { CertificateAuthority } from '../../core/sinks/api/grpc/testing/certificates.js'
import { type ApiSinkOptions, serveApi } from '../../core/sinks/api/index.js'
import { Store } from '../../core/store/index.js'
import { endpoint, node, service, syncedStore } from '../../core/testing/objects.js'
import { explainOverGrpc } from './explain.js'

// A node asks a real core over real sockets.

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function serve(store: Store, options: Partial<ApiSinkOptions> = {}) {
  const server = await serveApi({ store, log: silentLog, listen: 'tcp://127.0.0.1:0', ...options })
  cleanUps.push(() => server.close(50))
  return server.address
}

function storeWithWeb(): Store {
  const store = syncedStore()
  store.update((tx) => {
    tx.setService(service('web', { internalTrafficToLocal: true }))
    tx.setNode(node('node-a'))
    tx.setEndpoints({
      namespace: 'default',
      name: 'web-1',
      service: 'web',
      endpoints: [
        endpoint('10.0.0.1', { node: 'node-a', podName: 'web-1' }),
        endpoint('10.0.0.2', { node: 'node-b', podName: 'web-2', ready: false }),
      ],
    })
  })
  return store
}

test('a core says which endpoints a node uses, and why not the others', async () => {
  const answer = await explainOverGrpc('default/web', { api: await serve(storeWithWeb()), nodeName: 'node-a' })
  expect(answer).toMatchObject({ service: 'default/web', isKnown: true })
  expect(answer.endpoints.map(({ ips, isLocal, reason }) => [ips[0], isLocal, reason])).toEqual([
    ['10.0.0.1', true, undefined],
    ['10.0.0.2', false, 'not-ready'],
  ])
})

test('the answer is for the node that asks', async () => {
  const api = await serve(storeWithWeb())
  const { endpoints } = await explainOverGrpc('default/web', { api, nodeName: 'node-b' })
  expect(endpoints.map(({ isLocal }) => isLocal)).toEqual([false, true])
})

test('a core that knows more than its store says that too', async () => {
  const api = await serve(storeWithWeb(), {
    answerService: async (path, nodeName) => ({
      ...{ service: path, isKnown: true, nearest: [], endpoints: [] },
      causes: [`for ${nodeName}`],
    }),
  })
  expect(await explainOverGrpc('default/web', { api, nodeName: 'node-a' })).toMatchObject({ causes: ['for node-a'] })
})

test('a Service that nobody knows comes with similar ones', async () => {
  const api = await serve(storeWithWeb())
  expect(await explainOverGrpc('shop/web', { api, nodeName: 'node-a' })).toEqual({
    service: 'shop/web',
    isKnown: false,
    nearest: ['default/web'],
    endpoints: [],
  })
})

test('an old core is named as such', async () => {
  const old = await listen({ address: 'tcp://127.0.0.1:0', handlers: new Map(), log: silentLog })
  cleanUps.push(() => old.close(50))
  await expect(explainOverGrpc('default/web', { api: old.address })).rejects.toThrow(
    /^The core at 127\.0\.0\.1:\d+ did not say which endpoints are left out: it is too old to say why\. Update it\.$/,
  )
})

test('the next address is asked if the first cannot answer', async () => {
  const closed = await listen({ address: 'tcp://127.0.0.1:0', handlers: new Map(), log: silentLog })
  await closed.close(50)
  const api = [closed.address, await serve(new Store()), await serve(storeWithWeb())]
  expect(await explainOverGrpc('default/web', { api, nodeName: 'node-a' })).toMatchObject({ isKnown: true })
  await expect(explainOverGrpc('default/web', { api: api.slice(0, 2) })).rejects.toThrow(
    /does not know the cluster yet/,
  )
})

test('a core that does not answer is given up', async () => {
  const api = await serve(storeWithWeb(), { answerService: () => new Promise(() => {}) })
  await expect(explainOverGrpc('default/web', { api, limitMs: 100 })).rejects.toThrow(/did not answer within 0\.1 s/)
})

test('an answer that is too large says what to raise', async () => {
  const api = await serve(storeWithWeb())
  await expect(explainOverGrpc('default/web', { api, maxMessageBytes: 64 })).rejects.toThrow(/--max-msg-size/)
})

test.each([
  ['default/', /names no Service/],
  [`default/${'x'.repeat(254)}`, /longer than 253/],
])('%s is refused', async (path, expected) => {
  await expect(explainOverGrpc(path, { api: await serve(storeWithWeb()) })).rejects.toThrow(expected)
})

test('with TLS, nobody without a certificate of the CA is answered', async () => {
  const authority = new CertificateAuthority()
  const other = new CertificateAuthority('another CA')
  cleanUps.push(() => [authority, other].forEach((each) => void each.remove()))
  const tls = authority.issue('server')
  const api = await serve(storeWithWeb(), { tls })
  expect(await explainOverGrpc('default/web', { api, tls: authority.issue('client') })).toMatchObject({ isKnown: true })
  await expect(explainOverGrpc('default/web', { api })).rejects.toThrow(/closed the connection/)
  const stranger = { ...other.issue('stranger'), caFile: tls.caFile }
  await expect(explainOverGrpc('default/web', { api, tls: stranger })).rejects.toThrow(/did not say/)
})
