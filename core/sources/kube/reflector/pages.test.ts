import { expect, it } from 'vitest'
import { sendJson } from '../testing/fake-api.js'
import { until } from '../testing/recording.js'
import { reflect, startApi, widget, widgetsPath } from '../testing/reflecting.js'

async function pagedApi(objects: number) {
  const api = await startApi()
  api.streaming = 'refuse'
  for (let index = 0; index < objects; index++) api.set(widgetsPath, widget(`w${index}`))
  return api
}

const lists = (api: Awaited<ReturnType<typeof pagedApi>>) => api.requests.filter(({ kind }) => kind === 'list')

it('reads page after page and watches from the version of the list', async () => {
  const api = await pagedApi(12)
  const version = api.version
  const { handler } = await reflect(api.url, { pageSize: 5 })
  await until(() => api.watchers === 1)
  expect(lists(api).map(({ query }) => [query.get('limit'), query.get('continue')])).toEqual([
    ['5', null],
    ['5', `5:${version}`],
    ['5', `10:${version}`],
  ])
  expect(handler.state.size).toBe(12)
  expect(handler.lists).toBe(1)
  expect(api.requests.at(-1)?.query.get('resourceVersion')).toBe(version)
})

it('asks for 500 objects a page', async () => {
  const api = await pagedApi(1)
  await reflect(api.url)
  await until(() => lists(api).length === 1)
  expect(lists(api)[0]?.query.get('limit')).toBe('500')
})

it('starts the list again, in one go, when its continuation expires: nothing flaps', async () => {
  const api = await pagedApi(12)
  api.intercept = ({ query }) => {
    if (query.has('continue')) {
      api.set(widgetsPath, widget('new'))
      api.compact()
    }
    return false
  }
  const { handler } = await reflect(api.url, { pageSize: 5 })
  await until(() => api.watchers === 1)
  expect(lists(api).map(({ query }) => [query.get('limit'), query.has('continue')])).toEqual([
    ['5', false],
    ['5', true],
    [null, false],
  ])
  const calls = handler.take()
  expect(calls.filter((call) => call.startsWith('-'))).toEqual([])
  expect(calls.filter((call) => call.startsWith('+'))).toHaveLength(13)
  expect(handler.lists).toBe(1)
})

it.each([
  ['not JSON', '<html>', 'no Kubernetes list'],
  ['cut off', '{"metadata":{"resourceVersion":"1"},"items":[{"metadata"', 'no Kubernetes list'],
  ['an object without a version', '{"items":[]}', 'no metadata.resourceVersion'],
  ['a page that repeats itself', '{"metadata":{"resourceVersion":"1","continue":"x"},"items":[]}', 'repeats a page'],
])('says that an answer is no list: %s', async (_, body, said) => {
  const api = await pagedApi(0)
  api.intercept = ({ kind }, response) => {
    if (kind !== 'list') return false
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    return true
  }
  const { log, handler } = await reflect(api.url)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.text()).toContain(said)
  expect(handler.lists).toBe(0)
})

it('reads a list whose items come before its metadata', async () => {
  const api = await pagedApi(0)
  api.intercept = ({ kind }, response) => {
    if (kind === 'list') sendJson(response, 200, { items: [widget('a')], metadata: { resourceVersion: '7' } })
    return kind === 'list'
  }
  const { handler } = await reflect(api.url)
  await until(() => handler.lists === 1)
  expect(handler.take()).toEqual(['+a@undefined', 'listed'])
})

it('leaves out what is no object', async () => {
  const api = await pagedApi(0)
  api.intercept = ({ kind }, response) => {
    const items = [null, 7, 'x', {}, { metadata: null }, { metadata: { name: 3 } }, widget('a')]
    if (kind === 'list') sendJson(response, 200, { items, metadata: { resourceVersion: '7' } })
    return kind === 'list'
  }
  const { handler } = await reflect(api.url)
  await until(() => handler.lists === 1)
  expect(handler.take()).toEqual(['+a@undefined', 'listed'])
})
