import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Playground, startPlayground } from './index.js'
import { call, service, TestWatch } from './testing/client.js'

let playground: Playground
const services = '/api/v1/namespaces/default/services'
const streaming = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
const openWatch = () => TestWatch.open(playground, `${services}?watch=true&resourceVersion=${playground.revision}`)

beforeAll(async () => {
  playground = await startPlayground({ runPods: false })
})
afterEach(() => playground.faults.clear())
afterAll(() => playground.close())

describe('faults', () => {
  it('drop every watch without a word', async () => {
    const watch = await openWatch()
    playground.faults.dropWatches()
    expect(await watch.ended).toBe('cut')
  })
  it('expire versions: lists, continue tokens and watches from before get 410', async () => {
    for (const name of ['a', 'b', 'c']) playground.objects.apply(service(name))
    const { body: page } = await call(playground, 'GET', `${services}?limit=1`)
    const old = page.metadata.resourceVersion
    playground.objects.apply(service('d'))
    playground.faults.expireVersions()
    const next = await call(playground, 'GET', `${services}?limit=1&continue=${page.metadata.continue}`)
    expect(next).toMatchObject({ code: 410, body: { reason: 'Expired', kind: 'Status' } })
    expect((await call(playground, 'GET', `${services}?resourceVersion=${old}&resourceVersionMatch=Exact`)).code).toBe(
      410,
    )
    const watch = await TestWatch.open(playground, `${services}?watch=true&resourceVersion=${old}`)
    expect(watch.code).toBe(200)
    expect(await watch.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    })
    playground.faults.expiredWatch('status')
    expect((await call(playground, 'GET', `${services}?watch=true&resourceVersion=${old}`)).code).toBe(410)
  })
  it('expire open watches with an ERROR event inside', async () => {
    const watch = await openWatch()
    playground.faults.expireWatches()
    expect(await watch.take(1)).toEqual(['ERROR 410'])
    expect(await watch.ended).toBe('end')
  })
  it('expire old versions by themselves when the log is full', async () => {
    const small = await startPlayground({ runPods: false, changeLogSize: 10 })
    const old = small.revision
    for (let index = 0; index < 30; index++) small.objects.apply(service('busy', {}, { labels: { n: String(index) } }))
    const watch = await TestWatch.open(small, `${services}?watch=true&resourceVersion=${old}`)
    expect(await watch.take(1)).toEqual(['ERROR 410'])
    await small.close()
  })
  it('delay answers', async () => {
    playground.faults.delayAnswers(200, { match: /^GET .*nodes/ })
    const start = performance.now()
    await call(playground, 'GET', '/api/v1/nodes')
    expect(performance.now() - start).toBeGreaterThan(190)
  })
  it.each([
    [500, {}, 'InternalError'],
    [503, { retryAfterSeconds: 2 }, 'ServiceUnavailable'],
    [429, {}, 'TooManyRequests'],
  ])('fail the next requests with %s', async (code, options, reason) => {
    playground.faults.failNext(1, { code, ...options })
    const { body, headers, code: answered } = await call(playground, 'GET', services)
    expect({ answered, reason: body.reason }).toEqual({ answered: code, reason })
    if (code !== 500) expect(headers['retry-after']).toBe(code === 429 ? '1' : '2')
    expect((await call(playground, 'GET', services)).code).toBe(200)
  })
  it('fail with 403 in the words that name the missing rule', async () => {
    playground.faults.failNext(1, { code: 403 })
    const { body } = await call(playground, 'GET', '/apis/discovery.k8s.io/v1/endpointslices')
    expect(body.message).toBe(
      'endpointslices.discovery.k8s.io is forbidden: User "kpng-playground" cannot list resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope',
    )
  })
  it('fail a fraction of the requests', async () => {
    playground.faults.failFraction(0.5, { code: 503 })
    const codes = await Promise.all(
      Array.from({ length: 40 }, async () => (await call(playground, 'GET', services)).code),
    )
    expect(codes).toContain(200)
    expect(codes).toContain(503)
  })
  it('hang watches: no byte more, no end', async () => {
    const watch = await openWatch()
    playground.faults.hangWatches()
    playground.objects.apply(service('unseen'))
    expect(await watch.next(200)).toBeUndefined()
    expect(await Promise.race([watch.ended, Promise.resolve('open')])).toBe('open')
    const later = await TestWatch.open(playground, `${services}?watch=true`)
    expect([later.code, await later.next(100)]).toEqual([200, undefined])
    watch.close()
    later.close()
  })
  it('restart on the same port with the same state', async () => {
    const watch = await openWatch()
    const { revision } = playground
    await playground.faults.restart(50)
    expect(await watch.ended).toBe('cut')
    const { code, body } = await call(playground, 'GET', services)
    expect({ code, version: body.metadata.resourceVersion }).toEqual({ code: 200, version: String(revision) })
  })
  it('refuse streaming lists, or ignore that they were asked for', async () => {
    playground.faults.streamingLists('refused')
    expect(await call(playground, 'GET', `/api/v1/nodes?${streaming}`)).toMatchObject({
      code: 422,
      body: { reason: 'Invalid' },
    })
    playground.faults.streamingLists('ignored')
    const watch = await TestWatch.open(playground, `/api/v1/nodes?${streaming}`)
    expect(await watch.take(1)).toEqual(['ADDED playground'])
    expect(await watch.next(200)).toBeUndefined()
    watch.close()
  })
  it('leave bookmarks out', async () => {
    const quick = await startPlayground({ runPods: false, bookmarks: false, bookmarkIntervalMs: 20 })
    const watch = await TestWatch.open(
      quick,
      `${services}?watch=true&allowWatchBookmarks=true&resourceVersion=${quick.revision}`,
    )
    expect(await watch.next(100)).toBeUndefined()
    await quick.close()
  })
})
