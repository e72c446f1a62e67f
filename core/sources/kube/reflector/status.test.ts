import { expect, it } from 'vitest'
import { sleep, until } from '../../../testing/until.js'
import { sendStatus } from '../testing/fake-api.js'
import { reflect, startApi, widget, widgets, widgetsPath } from '../testing/reflecting.js'

// What a watch says of itself: whether it is connected, and when something last came.

async function watching(timing = {}) {
  const api = await startApi()
  api.set(widgetsPath, widget('a'))
  const reflecting = await reflect(api.url, { timing })
  await until(() => reflecting.status.isConnected)
  return { api, ...reflecting }
}

it('is connected once the list is complete, and not before', async () => {
  const api = await startApi()
  let answer = () => {}
  api.intercept = () => new Promise((resolve) => (answer = () => resolve(false)))
  const { status } = await reflect(api.url)
  await until(() => api.requests.length === 1)
  expect([status.isConnected, status.heardAtMs]).toEqual([false, undefined])
  answer()
  await until(() => status.isConnected)
  expect(status.heardAtMs).toBeTypeOf('number')
})

it.each(['streaming', 'pages'])('is lost with the server, and connected again with it (%s)', async (lists) => {
  const api = await startApi()
  if (lists === 'pages') api.streaming = 'refuse'
  const { status } = await reflect(api.url)
  await until(() => status.isConnected)
  const connectedAt = status.changedAtMs
  await api.stop()
  await until(() => !status.isConnected)
  const lostAt = status.changedAtMs
  expect(lostAt).toBeGreaterThan(connectedAt)
  await api.start()
  await until(() => status.isConnected)
  expect(status.changedAtMs).toBeGreaterThan(lostAt)
})

it('stays as it is while tries fail: the time is that of the loss', async () => {
  const { api, status } = await watching()
  api.intercept = (_, response) => {
    sendStatus(response, 500, 'etcd is away')
    return true
  }
  api.dropConnections()
  await until(() => !status.isConnected)
  const lostAt = status.changedAtMs
  const { length } = api.requests
  await until(() => api.requests.length > length + 2)
  expect(status.changedAtMs).toBe(lostAt)
})

it('hears events and bookmarks', async () => {
  const { api, status } = await watching()
  const told = [() => api.set(widgetsPath, widget('b')), () => api.bookmark()]
  for (const tell of told) {
    const heardAt = status.heardAtMs as number
    tell()
    await until(() => (status.heardAtMs as number) > heardAt)
  }
})

it('stays connected when the server ends the watch at its time', async () => {
  const { api, status } = await watching()
  const { changedAtMs } = status
  await sleep(120)
  api.endWatches()
  await until(() => api.requests.length === 2 && api.watchers === 1)
  expect([status.isConnected, status.changedAtMs]).toEqual([true, changedAtMs])
})

it('is absent where the server does not have the resource', async () => {
  const api = await startApi()
  const resource = { ...widgets, name: 'gadgets', optional: true }
  const { status } = await reflect(api.url, { resource })
  await until(() => status.isAbsent)
  expect(status.isConnected).toBe(false)
  api.collections.add('/apis/example.com/v1/gadgets')
  await until(() => status.isConnected)
  expect(status.isAbsent).toBe(false)
})

it('a watch whose bookmarks stay away is replaced, without a word and from the same version', async () => {
  const { api, recorder, log } = await watching({ quietWatchMs: 200 })
  api.set('/elsewhere', widget('x'))
  api.bookmark()
  await until(() => api.requests.length === 2 && api.watchers === 1)
  expect(api.requests[1]?.query.get('resourceVersion')).toBe('102')
  api.set(widgetsPath, widget('b'))
  await until(() => recorder.state.has('b'))
  expect(recorder.lists).toBe(1)
  expect(log.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
})

it('a quiet watch of a server that sends no bookmarks is left alone', async () => {
  const { api } = await watching({ quietWatchMs: 50 })
  await sleep(300)
  expect(api.requests).toHaveLength(1)
})

it('a watch that is open and silent from its beginning is noticed, if the server sends bookmarks', async () => {
  const { api, status, recorder, log } = await watching({ quietWatchMs: 200, connectedAfterMs: 50 })
  const heardAtMs = status.heardAtMs as number
  api.bookmark()
  await until(() => (status.heardAtMs as number) > heardAtMs)
  let silent = 0
  // Something between kpng and the server takes each watch, and answers for ever with nothing.
  api.intercept = ({ kind }, response) => {
    if (kind !== 'watch') return false
    silent++
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    return true
  }
  api.dropConnections()
  await until(() => silent === 2)
  const { changedAtMs } = status
  await until(() => silent === 3)
  // It is not connected again merely because it is open.
  expect([status.isConnected, status.changedAtMs]).toEqual([false, changedAtMs])
  expect(log.text()).toContain('not even a bookmark')
  await until(() => recorder.lists === 2)
  expect(silent).toBe(3)
})

it('a half-open watch is noticed by its missing bookmarks: the next one gets no answer', async () => {
  const { api, status } = await watching({ quietWatchMs: 200, answerTimeoutMs: 300 })
  api.bookmark()
  // The server is there and says nothing any more, as behind a proxy that keeps connections open.
  api.intercept = () => new Promise(() => {})
  await until(() => !status.isConnected)
})
