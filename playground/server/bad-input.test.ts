import { get } from 'node:https'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Playground, startPlayground } from '../index.js'
import { call } from '../testing/client.js'

let playground: Playground
beforeAll(async () => {
  playground = await startPlayground({ runPods: false })
})
afterAll(() => playground.close())

const collections = [
  '/api/v1/namespaces/default/services',
  '/api/v1/namespaces/default/pods',
  '/api/v1/namespaces/default/endpoints',
  '/api/v1/namespaces/default/events',
  '/api/v1/namespaces/default/configmaps',
  '/api/v1/namespaces/default/secrets',
  '/api/v1/namespaces/default/serviceaccounts',
  '/api/v1/nodes',
  '/api/v1/namespaces',
  '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
  '/apis/networking.k8s.io/v1/servicecidrs',
  '/apis/apps/v1/namespaces/default/deployments',
  '/apis/events.k8s.io/v1/namespaces/default/events',
]
const bodies: unknown[] = [
  null,
  [],
  'text',
  42,
  {},
  { metadata: null },
  { metadata: 'x' },
  { metadata: { name: 'x', labels: [] } },
  { metadata: { name: '' }, spec: null },
  { metadata: { name: 'x' }, spec: [] },
  { metadata: { name: 'x' }, spec: {} },
  { metadata: { name: 'x' }, spec: { ports: [null], containers: [null], taints: [{}], cidrs: ['x'] } },
  { metadata: { name: 'x' }, spec: { ports: [{}], containers: [{}], template: {}, selector: {} } },
  { metadata: { name: 'x' }, addressType: 'IPv4', endpoints: [{}], subsets: [{}], ports: [{ port: 0 }] },
  { kind: 'Other', metadata: { name: 'x' } },
  { apiVersion: 'v9', metadata: { name: 'x' } },
  { metadata: { name: 'x', namespace: 'elsewhere' } },
  { metadata: { name: '../../etc' } },
  { metadata: { name: 'x', finalizers: ['not a name'] } },
  { metadata: { name: 'x', annotations: { 'a b': 'c' } } },
]

describe('bad input is refused in a sentence, and loses nothing', () => {
  it.each(collections)('%s', async (path) => {
    for (const body of bodies) {
      const { code, body: answer } = await call(playground, 'POST', path, body)
      const what = `${JSON.stringify(body)} → ${JSON.stringify(answer)}`
      expect(code, what).toBeLessThan(500)
      if (code >= 400)
        expect(answer, what).toMatchObject({
          kind: 'Status',
          message: expect.stringMatching(/\w/),
          reason: expect.any(String),
        })
      if (code === 201) await call(playground, 'DELETE', `${path}/${answer.metadata.name}`)
    }
    expect((await call(playground, 'GET', '/api/v1/namespaces/default/services/kubernetes')).code).toBe(200)
  })
  it.each([
    ['GET', '/api/v1/services?labelSelector=a%20b%20c', 400],
    ['GET', '/api/v1/services?fieldSelector=x', 400],
    ['GET', '/api/v1/services?resourceVersion=abc', 422],
    ['GET', '/api/v1/services?limit=abc', 400],
    ['GET', '/api/v1/services?continue=nonsense', 400],
    ['GET', '/api/v1/namespaces/%E0%A4%A/services', 400],
    ['GET', '/api/v1/namespaces/default/services/kubernetes/nothing', 404],
    ['PUT', '/api/v1/services', 405],
    ['OPTIONS', '/api/v1/services', 405],
    ['GET', '/api/v1/pods?fieldSelector=status.phase%3DRunning&resourceVersionMatch=Exact', 422],
    ['GET', '/api/v1/pods?watch=true&sendInitialEvents=true', 422],
  ])('%s %s → %s', async (method, path, expected) => {
    expect((await call(playground, method, path)).code).toBe(expected)
  })
  it.each(['application/merge-patch+json', 'application/strategic-merge-patch+json', 'application/json-patch+json'])(
    '%s with __proto__ is refused',
    async (type) => {
      const bodies = type.startsWith('application/json-patch')
        ? [JSON.stringify([{ op: 'add', path: '/__proto__/polluted', value: 1 }])]
        : ['{"metadata":{"__proto__":{"polluted":1}}}', '{"\\u005f_proto__":{"polluted":1}}']
      for (const body of bodies) {
        const { code } = await call(
          playground,
          'PATCH',
          '/api/v1/namespaces/default/services/kubernetes',
          Buffer.from(body),
          { 'content-type': type },
        )
        expect([400, 422]).toContain(code)
        expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
      }
    },
  )
  it('a body of another format names those that are read', async () => {
    const { code, body } = await call(
      playground,
      'POST',
      '/api/v1/namespaces',
      {},
      { 'content-type': 'application/yaml' },
    )
    expect(code).toBe(415)
    expect(body.message).toContain('accepted media types include: application/json')
    expect((await call(playground, 'GET', '/api/v1/nodes', undefined, { accept: 'text/html' })).code).toBe(406)
  })
})

describe('a page in a browser', () => {
  it.each([
    ['of another site', { origin: 'https://evil.example' }],
    ['of another site, as its browser says', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }],
  ])('%s is refused', async (_, headers) => {
    const { code, body } = await call(playground, 'GET', '/version', undefined, headers)
    expect([code, body.reason]).toEqual([403, 'Forbidden'])
  })

  it('whose name was made to resolve here is refused, if its browser takes the certificate', async () => {
    const options = { ca: playground.caPem, servername: 'localhost', headers: { host: 'evil.example:6443' } }
    const code = await new Promise((resolve, reject) => {
      get(`${playground.url}/version`, options, (response) => resolve(response.resume().statusCode)).on('error', reject)
    })
    expect(code).toBe(403)
  })

  it.each(['localhost:6443', 'kubernetes.default.svc', '127.0.0.1'])('and the server is known as %s', async (host) => {
    expect((await call(playground, 'GET', '/version', undefined, { host })).code).toBe(200)
  })
})
