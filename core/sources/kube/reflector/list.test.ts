import { expect, it } from 'vitest'
import { until } from '../../../testing/until.js'
import { sendJson, sendStatus } from '../testing/fake-api.js'
import { reflect, startApi, widget, widgetsPath } from '../testing/reflecting.js'

async function pagedApi(objects: number) {
  const api = await startApi()
  api.streaming = 'refuse'
  api.watchCache = false
  for (let index = 0; index < objects; index++) api.set(widgetsPath, widget(`w${index}`))
  return api
}

const lists = (api: Awaited<ReturnType<typeof pagedApi>>) => api.requests.filter(({ kind }) => kind === 'list')

it('reads page after page and watches from the version of the list', async () => {
  const api = await pagedApi(12)
  const version = api.version
  const { recorder } = await reflect(api.url, { pageSize: 5 })
  await until(() => api.watchers === 1)
  expect(lists(api).map(({ query }) => [query.get('limit'), query.get('continue')])).toEqual([
    ['5', null],
    ['5', `5:${version}`],
    ['5', `10:${version}`],
  ])
  expect(recorder.state.size).toBe(12)
  expect(recorder.lists).toBe(1)
  expect(api.requests.at(-1)?.query.get('resourceVersion')).toBe(version)
})

it('asks for 500 objects a page', async () => {
  const api = await pagedApi(1)
  await reflect(api.url)
  await until(() => lists(api).length === 1)
  expect(lists(api)[0]?.query.get('limit')).toBe('500')
})

it('lists from the cache of the server, and after a lost watch only what is not older than what is known', async () => {
  const api = await pagedApi(12)
  api.watchCache = true
  const { recorder } = await reflect(api.url, { pageSize: 5 })
  await until(() => api.watchers === 1)
  const version = api.version
  api.set('/elsewhere', widget('x'))
  api.compact()
  api.sendToWatchers({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  await until(() => recorder.lists === 2)
  expect(lists(api).map(({ query }) => [query.get('resourceVersion'), query.get('limit')])).toEqual([
    ['0', '5'],
    // With a limit it would be read from etcd.
    [version, null],
  ])
})

it.each(['Expired', 'Too large resource version: 7, current: 5'])(
  'asks for what etcd has when the server cannot list at the version that is known: %s',
  async (said) => {
    const api = await pagedApi(3)
    const { recorder } = await reflect(api.url, { pageSize: 5 })
    await until(() => api.watchers === 1)
    api.intercept = ({ kind, query }, response) => {
      if (kind !== 'list' || !query.has('resourceVersion')) return false
      sendStatus(response, said === 'Expired' ? 410 : 504, said)
      return true
    }
    api.sendToWatchers({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
    await until(() => recorder.lists === 2)
    expect(lists(api).map(({ query }) => [query.has('resourceVersion'), query.get('limit')])).toEqual([
      [true, '5'],
      [true, null],
      [false, '5'],
    ])
  },
)

it('starts the list again, in one go, when its continuation expires: nothing flaps', async () => {
  const api = await pagedApi(12)
  api.intercept = ({ query }) => {
    if (query.has('continue')) {
      api.set(widgetsPath, widget('new'))
      api.compact()
    }
    return false
  }
  const { recorder } = await reflect(api.url, { pageSize: 5 })
  await until(() => api.watchers === 1)
  expect(lists(api).map(({ query }) => [query.get('limit'), query.has('continue')])).toEqual([
    ['5', false],
    ['5', true],
    [null, false],
  ])
  const calls = recorder.take()
  expect(calls.filter((call) => call.startsWith('-'))).toEqual([])
  expect(calls.filter((call) => call.startsWith('+'))).toHaveLength(13)
  expect(recorder.lists).toBe(1)
})

it.each([
  ['not JSON', '<html>', 'not a Kubernetes list'],
  ['cut off', '{"metadata":{"resourceVersion":"1"},"items":[{"metadata"', 'not a Kubernetes list'],
  ['an object without a version', '{"items":[]}', 'no metadata.resourceVersion'],
  ['a page that repeats itself', '{"metadata":{"resourceVersion":"1","continue":"x"},"items":[]}', 'repeats a page'],
])('says that an answer is no list: %s', async (_, body, said) => {
  const api = await pagedApi(0)
  api.intercept = ({ kind }, response) => {
    if (kind !== 'list') return false
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    return true
  }
  const { log, recorder } = await reflect(api.url)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.text()).toContain(said)
  expect(recorder.lists).toBe(0)
})

it('reads a list whose items come before its metadata', async () => {
  const api = await pagedApi(0)
  api.intercept = ({ kind }, response) => {
    if (kind === 'list') sendJson(response, 200, { items: [widget('a')], metadata: { resourceVersion: '7' } })
    return kind === 'list'
  }
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(recorder.take()).toEqual(['+a@undefined', 'listed'])
})

it('leaves out what is no object, and tells so', async () => {
  const api = await pagedApi(0)
  api.intercept = ({ kind }, response) => {
    // The first three are not even cut out of the list.
    const items = [null, 7, 'x', {}, { metadata: null }, { metadata: { name: 3 } }, widget('a')]
    if (kind === 'list') sendJson(response, 200, { items, metadata: { resourceVersion: '7' } })
    return kind === 'list'
  }
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(recorder.take()).toEqual(['nameless', 'nameless', 'nameless', '+a@undefined', 'listed'])
})
