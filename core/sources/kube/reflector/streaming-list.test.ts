import { expect, it } from 'vitest'
import { sleep, until } from '../../../testing/until.js'
import { sendStatus } from '../testing/fake-api.js'
import { reflect, requestedAfterMs, startApi, widget, widgetsPath } from '../testing/reflecting.js'

const kinds = (api: { requests: readonly { kind: string }[] }) => api.requests.map(({ kind }) => kind)

it('lists and watches with one request', async () => {
  const api = await startApi()
  api.set(widgetsPath, widget('a'))
  api.set(widgetsPath, widget('b'))
  const { recorder, events } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(recorder.take()).toEqual(['+a@101', '+b@102', 'listed'])

  api.set(widgetsPath, widget('b', { more: true }))
  api.remove(widgetsPath, 'a', 'default')
  await until(() => recorder.notes.includes('-a'))
  expect(recorder.take()).toEqual(['+b@103', '-a'])
  expect(events).toEqual(['ADDED', 'ADDED', 'MODIFIED', 'DELETED'])
  expect(kinds(api)).toEqual(['streaming list'])
  const { query, headers } = api.requests[0] ?? { query: new URLSearchParams(), headers: {} }
  expect(Object.fromEntries(query)).toMatchObject({
    watch: '1',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: 'true',
  })
  expect(headers).toMatchObject({ accept: 'application/json', 'accept-encoding': 'identity' })
})

it('asks for watches of 5 to 10 minutes', async () => {
  const api = await startApi()
  await reflect(api.url, { timing: { watchSeconds: [300, 600] } })
  await until(() => api.requests.length === 1)
  const seconds = Number(api.requests[0]?.query.get('timeoutSeconds'))
  expect(seconds).toBeGreaterThanOrEqual(300)
  expect(seconds).toBeLessThanOrEqual(600)
})

it('falls back to pages where the server refuses, and does not ask again', async () => {
  const api = await startApi()
  api.streaming = 'refuse'
  api.set(widgetsPath, widget('a'))
  const { recorder } = await reflect(api.url)
  await until(() => api.watchers === 1)
  expect(recorder.take()).toEqual(['+a@101', 'listed'])
  api.compact()
  api.sendToWatchers({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  await until(() => kinds(api).length === 5)
  expect(kinds(api)).toEqual(['streaming list', 'list', 'watch', 'list', 'watch'])
})

it('asks again at a list some minutes later: the server may only have been slow, or be newer by now', async () => {
  const api = await startApi()
  api.streaming = 'ignore'
  const { recorder } = await reflect(api.url, { timing: { streamingRecheckMs: 2_000 } })
  await until(() => recorder.lists === 1 && api.watchers === 1)
  api.streaming = 'yes'
  const expire = () => api.sendToWatchers({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  expire()
  await until(() => recorder.lists === 2 && api.watchers === 1)
  await sleep(2_000)
  expire()
  await until(() => recorder.lists === 3)
  expect(kinds(api)).toEqual(['streaming list', 'list', 'watch', 'list', 'watch', 'streaming list'])
})

it.each([
  [400, 'unknown field sendInitialEvents'],
  [403, 'sendInitialEvents: Forbidden'],
  [422, 'resourceVersionMatch is forbidden for watch'],
])('takes %i "%s" for a refusal', async (code, message) => {
  const api = await startApi()
  api.intercept = ({ kind }, response) => {
    if (kind === 'streaming list') sendStatus(response, code, message)
    return kind === 'streaming list'
  }
  const { recorder, log } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(kinds(api).slice(0, 2)).toEqual(['streaming list', 'list'])
  expect(log.lines.filter(({ level }) => level === 'error')).toEqual([])
})

it('notices a server that ignores what it is asked for by its silence', async () => {
  const api = await startApi()
  api.streaming = 'ignore'
  api.set(widgetsPath, widget('a'))
  const startedAt = performance.now()
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(requestedAfterMs(api, 1, startedAt)).toBeGreaterThanOrEqual(149)
  expect(kinds(api).slice(0, 2)).toEqual(['streaming list', 'list'])
  expect(recorder.take()).toEqual(['+a@101', 'listed'])
})

it('and by an ordinary bookmark, also when changes keep coming', async () => {
  const api = await startApi()
  api.streaming = 'ignore'
  const { recorder } = await reflect(api.url, { timing: { initialEventsQuietMs: 60_000 } })
  await until(() => api.watchers === 1)
  api.set(widgetsPath, widget('a'))
  api.bookmark()
  await until(() => recorder.lists === 1)
  expect([...recorder.state]).toEqual([['a', '101']])
  expect(kinds(api).slice(0, 2)).toEqual(['streaming list', 'list'])
})

it('reads pages after the stream has broken off three times', async () => {
  const api = await startApi()
  api.intercept = ({ kind }, response) => {
    if (kind !== 'streaming list') return false
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    setTimeout(() => response.destroy(), 5)
    return true
  }
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(kinds(api).slice(0, 4)).toEqual(['streaming list', 'streaming list', 'streaming list', 'list'])
})

it('keeps what a broken list has brought, and deletes nothing before one is complete', async () => {
  const api = await startApi()
  for (const name of ['a', 'b', 'c']) api.set(widgetsPath, widget(name))
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  recorder.take()
  let broken = 0
  api.intercept = ({ kind }, response) => {
    if (kind !== 'streaming list' || broken++ > 0) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(`${JSON.stringify({ type: 'ADDED', object: api.objects(widgetsPath)[0] })}\n`)
    setTimeout(() => response.destroy(), 20)
    return true
  }
  api.remove(widgetsPath, 'c', 'default')
  await until(() => recorder.notes.includes('-c'))
  recorder.take()
  api.compact()
  api.sendToWatchers({ type: 'ERROR', object: { code: 410 } })
  await until(() => recorder.lists === 2)
  expect(broken).toBe(2)
  expect(recorder.take()).toEqual(['listed'])
})
