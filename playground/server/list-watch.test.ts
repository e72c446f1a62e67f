import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Playground, startPlayground } from '../index.js'
import { call, service, TestWatch } from '../testing/client.js'

let playground: Playground
const services = '/api/v1/namespaces/default/services'

beforeAll(async () => {
  playground = await startPlayground({ runPods: false, bookmarkIntervalMs: 100 })
})
afterAll(() => playground.close())

describe('who may ask', () => {
  it('anonymous and wrong tokens get a 401 Status', async () => {
    for (const headers of [{ authorization: '' }, { authorization: 'Bearer wrong' }]) {
      const { code, body } = await call(playground, 'GET', services, undefined, headers)
      expect(code).toBe(401)
      expect(body).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'Unauthorized', code: 401 })
    }
  })
  it('health and version are for everybody', async () => {
    for (const path of ['/healthz', '/livez', '/readyz']) {
      expect((await call(playground, 'GET', path, undefined, { authorization: '' })).body).toBe('ok')
    }
    expect((await call(playground, 'GET', '/version', undefined, { authorization: '' })).body.gitVersion).toMatch(
      /^v1\.\d+\.\d+\+kpng$/,
    )
  })
})

describe('lists', () => {
  it('come in pages of one revision, whatever is written in between', async () => {
    for (const name of ['p1', 'p2', 'p3', 'p4', 'p5'])
      playground.objects.apply(service(name, {}, { labels: { page: 'yes' } }))
    const query = '?limit=2&labelSelector=page%3Dyes'
    const first = await call(playground, 'GET', services + query)
    const version = first.body.metadata.resourceVersion
    playground.objects.delete('Service', 'p3')
    playground.objects.apply(service('p0', {}, { labels: { page: 'yes' } }))
    playground.objects.apply(service('p4', {}, { labels: { page: 'no' } }))
    const names: string[] = first.body.items.map((item: { metadata: { name: string } }) => item.metadata.name)
    let token: string = first.body.metadata.continue
    while (token) {
      const { body } = await call(playground, 'GET', `${services + query}&continue=${token}`)
      expect(body.metadata.resourceVersion).toBe(version)
      names.push(...body.items.map((item: { metadata: { name: string } }) => item.metadata.name))
      token = body.metadata.continue
    }
    expect(names).toEqual(['p1', 'p2', 'p3', 'p4', 'p5'])
  })
  it('can be of an exact older version', async () => {
    const { resourceVersion } = playground.objects.apply(service('old', {}, { labels: { n: '1' } })).metadata
    playground.objects.apply(service('old', {}, { labels: { n: '2' } }))
    const query = `?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Dold`
    const { body } = await call(playground, 'GET', services + query)
    expect(body.items[0].metadata.labels).toEqual({ n: '1' })
    expect(body.metadata.resourceVersion).toBe(resourceVersion)
  })
  it('say when a version is not there yet', async () => {
    const { code, body } = await call(
      playground,
      'GET',
      `${services}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan`,
    )
    expect(code).toBe(504)
    expect(body.message).toContain('Too large resource version: 99999999')
  })
  it('leave kind and apiVersion to the list, as the API server does', async () => {
    const { body } = await call(playground, 'GET', services)
    expect(body).toMatchObject({ kind: 'ServiceList', apiVersion: 'v1' })
    expect(body.items[0]).not.toHaveProperty('kind')
    expect(body.items[0].metadata.name).toBe('kubernetes')
  })
  it('refuse what does not exist in the usual words', async () => {
    expect((await call(playground, 'GET', `${services}/nope`)).body).toMatchObject({
      code: 404,
      reason: 'NotFound',
      message: 'services "nope" not found',
      details: { name: 'nope', kind: 'services' },
    })
    expect((await call(playground, 'GET', '/apis/example.com/v1/things')).code).toBe(404)
    expect((await call(playground, 'GET', `${services}?fieldSelector=spec.color%3Dred`)).body.message).toBe(
      'field label not supported: spec.color',
    )
  })
})

describe('watches', () => {
  it('go on from a version: added, modified, deleted, with rising versions', async () => {
    const watch = await TestWatch.open(playground, `${services}?watch=true&resourceVersion=${playground.revision}`)
    playground.objects.apply(service('w1'))
    playground.objects.apply(service('w1', {}, { labels: { a: 'b' } }))
    playground.objects.apply(service('w1', {}, { labels: { a: 'b' } }))
    playground.objects.delete('Service', 'w1')
    const events = [await watch.next(), await watch.next(), await watch.next()]
    expect(events.map((event) => event?.type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    const versions = events.map((event) => Number(event?.object.metadata.resourceVersion))
    expect(versions).toEqual([...versions].sort((a, b) => a - b))
    expect(new Set(versions).size).toBe(3)
    watch.close()
  })
  it('see an object enter and leave their selector', async () => {
    const query = `labelSelector=${encodeURIComponent('!service.kubernetes.io/service-proxy-name')}`
    const watch = await TestWatch.open(
      playground,
      `${services}?watch=1&resourceVersion=${playground.revision}&${query}`,
    )
    const named = { 'service.kubernetes.io/service-proxy-name': 'other' }
    playground.objects.apply(service('s1', {}, { labels: { v: '1' } }))
    playground.objects.apply(service('s1', {}, { labels: named }))
    playground.objects.apply(service('s1', {}, { labels: { ...named, v: '2' } }))
    playground.objects.apply(service('s1', {}, { labels: { v: '3' } }))
    const [, left, back] = [await watch.next(), await watch.next(), await watch.next()]
    expect([left?.type, back?.type]).toEqual(['DELETED', 'ADDED'])
    // The last state this watch could see, at the version of the change.
    expect(left?.object.metadata.labels).toEqual({ v: '1' })
    expect(Number(left?.object.metadata.resourceVersion)).toBeLessThan(Number(back?.object.metadata.resourceVersion))
    watch.close()
  })
  it('without a version begin with what is there', async () => {
    const watch = await TestWatch.open(playground, '/api/v1/namespaces?watch=true')
    expect((await watch.take(4)).sort()).toEqual([
      'ADDED default',
      'ADDED kube-node-lease',
      'ADDED kube-public',
      'ADDED kube-system',
    ])
    watch.close()
  })
  it('stream lists with a marked bookmark at the end', async () => {
    const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const watch = await TestWatch.open(playground, `/api/v1/nodes?${query}`)
    expect(await watch.take(1)).toEqual(['ADDED playground'])
    const end = await watch.next()
    expect(end?.type).toBe('BOOKMARK')
    expect(end?.object).toMatchObject({
      kind: 'Node',
      apiVersion: 'v1',
      metadata: { annotations: { 'k8s.io/initial-events-end': 'true' }, resourceVersion: String(playground.revision) },
    })
    watch.close()
  })
  it('send bookmarks when asked, and one before they end by timeoutSeconds', async () => {
    const at = playground.revision
    const watch = await TestWatch.open(
      playground,
      `${services}?watch=true&resourceVersion=${at}&allowWatchBookmarks=true&timeoutSeconds=1`,
    )
    expect((await watch.next())?.type).toBe('BOOKMARK')
    playground.objects.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } })
    const bookmark = await watch.next()
    expect(bookmark?.type).toBe('BOOKMARK')
    expect(Number(bookmark?.object.metadata.resourceVersion)).toBeGreaterThan(at)
    expect(await watch.ended).toBe('end')
  })
  it('show tables to who wants them', async () => {
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
    const watch = await TestWatch.open(playground, '/api/v1/nodes?watch=true', { accept })
    const event = await watch.next()
    expect(event?.object).toMatchObject({
      kind: 'Table',
      rows: [{ cells: expect.arrayContaining(['playground', 'Ready']) }],
    })
    watch.close()
  })
})

describe('writes', () => {
  it('conflict on a stale version', async () => {
    const old = (await call(playground, 'POST', services, service('c1'))).body
    await call(playground, 'PUT', `${services}/c1`, { ...old, metadata: { ...old.metadata, labels: { a: 'b' } } })
    const { code, body } = await call(playground, 'PUT', `${services}/c1`, {
      ...old,
      spec: { ...old.spec, sessionAffinity: 'ClientIP' },
    })
    expect(code).toBe(409)
    expect(body.message).toBe(
      'Operation cannot be fulfilled on services "c1": the object has been modified; please apply your changes to the latest version and try again',
    )
  })
  it('that change nothing make no version', async () => {
    const { body } = await call(playground, 'GET', `${services}/c1`)
    const before = playground.revision
    expect((await call(playground, 'PUT', `${services}/c1`, body)).body.metadata.resourceVersion).toBe(
      body.metadata.resourceVersion,
    )
    expect(playground.revision).toBe(before)
  })
  it('honour preconditions, finalizers and generateName', async () => {
    const made = (
      await call(playground, 'POST', services, {
        ...service('x'),
        metadata: { generateName: 'gen-', finalizers: ['example.com/hold'] },
      })
    ).body
    expect(made.metadata.name).toMatch(/^gen-[a-z0-9]{5}$/)
    const path = `${services}/${made.metadata.name}`
    const wrong = await call(playground, 'DELETE', path, { preconditions: { uid: 'other' } })
    expect(wrong.body.message).toContain(
      `Precondition failed: UID in precondition: other, UID in object meta: ${made.metadata.uid}`,
    )
    const held = await call(playground, 'DELETE', path)
    expect(held.body.metadata.deletionTimestamp).toBeTruthy()
    expect((await call(playground, 'GET', path)).code).toBe(200)
    const patch = { 'content-type': 'application/merge-patch+json' }
    await call(playground, 'PATCH', path, { metadata: { finalizers: null } }, patch)
    expect((await call(playground, 'GET', path)).code).toBe(404)
  })
  it('delete collections by selector', async () => {
    for (const name of ['d1', 'd2']) playground.objects.apply(service(name, {}, { labels: { gone: 'soon' } }))
    await call(playground, 'DELETE', `${services}?labelSelector=gone%3Dsoon`)
    expect(playground.objects.list('Service', { labelSelector: 'gone=soon' })).toEqual([])
  })
  it('of a namespace take everything in it along', async () => {
    playground.objects.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'full' } })
    playground.objects.apply(service('inside', {}, { namespace: 'full', finalizers: ['example.com/hold'] }))
    playground.objects.delete('Namespace', 'full')
    const refused = await call(playground, 'POST', '/api/v1/namespaces/full/services', service('late'))
    expect(refused.body.message).toContain(
      'unable to create new content in namespace full because it is being terminated',
    )
    playground.objects.apply(service('inside', {}, { namespace: 'full', finalizers: [] }))
    await playground.objects.waitFor('Namespace', 'full', (namespace) => namespace === undefined)
    expect(playground.objects.list('Service', { namespace: 'full' })).toEqual([])
  })
  it('of events work in both API groups', async () => {
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'e1', namespace: 'default' },
      eventTime: '2030-01-01T00:00:00.000000Z',
      regarding: { kind: 'Node', name: 'playground' },
      note: 'hello',
      reason: 'Starting',
      type: 'Normal',
      reportingController: 'kpng',
    }
    expect((await call(playground, 'POST', '/apis/events.k8s.io/v1/namespaces/default/events', event)).code).toBe(201)
    const { body } = await call(
      playground,
      'GET',
      '/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dplayground',
    )
    expect(body.items[0]).toMatchObject({
      message: 'hello',
      reportingComponent: 'kpng',
      involvedObject: { kind: 'Node' },
    })
    const newer = await call(playground, 'GET', '/apis/events.k8s.io/v1/namespaces/default/events/e1')
    expect(newer.body).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      note: 'hello',
      regarding: { name: 'playground' },
    })
  })
})
