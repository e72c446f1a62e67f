import { connect, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../../../testing/until.js'
import { sendStatus } from '../testing/fake-api.js'
import { reflect, requestedAfterMs, startApi, widget, widgets, widgetsPath } from '../testing/reflecting.js'

it('waits for a server that is not there yet', async () => {
  const api = await startApi()
  const { url } = api
  await api.stop()
  const { recorder, log } = await reflect(url)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.text()).toContain(`Cannot reach the API server ${url}`)
  expect(log.text()).toContain('the connection was refused. Check that the server runs, and the given server URL.')
  await api.start()
  await until(() => recorder.lists === 1)
})

it('says the same failure once, and its end', async () => {
  const api = await startApi()
  let failures = 0
  api.intercept = (_, response) => {
    if (++failures > 6) return false
    sendStatus(response, 500, 'etcd is away')
    return true
  }
  const { recorder, log } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  const loud = log.lines.filter(({ level }) => !/^\d/.test(level)).map(({ level, message }) => [level, message])
  expect(loud).toEqual([
    ['warn', 'The API server cannot answer now: trying again'],
    ['info', 'Listed'],
    ['info', 'Kubernetes can be read again'],
  ])
})

it('tells a hung watch by its end being overdue, and leaves a quiet one alone', async () => {
  const api = await startApi()
  const startedAt = performance.now()
  const { log } = await reflect(api.url, { timing: { watchSeconds: [1, 1], watchGraceMs: 100 } })
  await until(() => api.requests.length === 2)
  expect(requestedAfterMs(api, 1, startedAt)).toBeGreaterThanOrEqual(1_099)
  expect(api.requests[1]?.kind).toBe('watch')
  expect(log.text()).toContain('did not end the watch of widgets within 1.1 s: it hangs')
})

it('gives up on a server that accepts and never answers', async () => {
  let connections = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    connections++
    sockets.add(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  // undici's clock for this ticks every half a second.
  const { log } = await reflect(`http://127.0.0.1:${port}`, { timing: { answerTimeoutMs: 300 } })
  await until(() => connections >= 2)
  expect(log.text()).toContain('did not answer in time')
})

it('gives up on a list that stops in the middle', async () => {
  const api = await startApi()
  api.streaming = 'refuse'
  let stalled = 0
  api.intercept = ({ kind }, response) => {
    if (kind !== 'list' || stalled > 0) return false
    stalled++
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{"metadata":{"resourceVersion":"1"},"items":[')
    return true
  }
  const { recorder, log } = await reflect(api.url, { timing: { answerTimeoutMs: 300 } })
  await until(() => recorder.lists === 1)
  expect(log.text()).toContain('The list of widgets broke off')
})

it('names the RBAC rule that is missing', async () => {
  const api = await startApi()
  let allowed = false
  api.intercept = (_, response) => {
    if (allowed) return false
    sendStatus(response, 403, 'widgets.example.com is forbidden: User "x" cannot watch resource "widgets"', 'Forbidden')
    return true
  }
  const { recorder, log } = await reflect(api.url)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.lines.find(({ level }) => level === 'error')).toMatchObject({
    message: 'The API server forbids kpng to watch a resource: add this rule to the ClusterRole',
    fields: {
      rule: '{apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"]}',
      answer: 'widgets.example.com is forbidden: User "x" cannot watch resource "widgets"',
    },
  })
  allowed = true
  await until(() => recorder.lists === 1)
})

it('says when the credentials are refused', async () => {
  const api = await startApi()
  api.intercept = (_, response) => {
    sendStatus(response, 401, 'Unauthorized', 'Unauthorized')
    return true
  }
  const { log } = await reflect(api.url)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.text()).toContain('does not accept the credentials')
})

it('waits as long as a busy server asks for', async () => {
  const api = await startApi()
  api.intercept = (_, response) => {
    if (api.requests.length > 1) return false
    sendStatus(response, 429, 'too many requests', 'TooManyRequests', { 'retry-after': '1' })
    return true
  }
  const { recorder } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  expect(requestedAfterMs(api, 1, api.requests[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(990)
})

it('but not for ever', async () => {
  const api = await startApi()
  api.intercept = (_, response) => {
    if (api.requests.length > 1) return false
    sendStatus(response, 429, 'too many requests', 'TooManyRequests', { 'retry-after': '86400' })
    return true
  }
  const { recorder } = await reflect(api.url, { timing: { maxRetryAfterMs: 100 } })
  await until(() => recorder.lists === 1)
})

it('takes an optional resource that the server lacks for empty, and looks for it rarely', async () => {
  const api = await startApi()
  api.collections.clear()
  const startedAt = performance.now()
  const { recorder, log } = await reflect(api.url, { resource: { ...widgets, optional: true } })
  await until(() => api.requests.length === 2)
  expect(recorder.take()[0]).toBe('listed')
  expect(requestedAfterMs(api, 1, startedAt)).toBeGreaterThanOrEqual(99)
  expect(log.lines.filter(({ level }) => ['error', 'warn'].includes(level))).toEqual([])
  api.set(widgetsPath, widget('a'))
  await until(() => recorder.state.has('a'))
})

it('forgets the objects of an optional resource that goes away', async () => {
  const api = await startApi()
  api.set(widgetsPath, widget('a'))
  const { recorder } = await reflect(api.url, { resource: { ...widgets, optional: true } })
  await until(() => recorder.state.has('a'))
  api.intercept = (_, response) => {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n')
    return true
  }
  api.dropConnections()
  await until(() => recorder.state.size === 0)
})

it('goes on without an optional resource that it may not see, and says what rule would do', async () => {
  const api = await startApi()
  api.intercept = (_, response) => {
    sendStatus(response, 403, 'no', 'Forbidden')
    return true
  }
  const { recorder, log } = await reflect(api.url, { resource: { ...widgets, optional: true } })
  await until(() => recorder.lists === 1)
  expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  expect(log.text()).toContain('resources: [\\"widgets\\"]')
})

it('says which API is missing when it is needed', async () => {
  const api = await startApi()
  api.collections.clear()
  const { recorder, log } = await reflect(api.url)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.lines.find(({ level }) => level === 'error')?.fields).toMatchObject({ api: 'example.com/v1' })
  expect(recorder.lists).toBe(0)
})

it('selects by itself where the server cannot select by a field', async () => {
  const api = await startApi()
  api.intercept = ({ query }, response) => {
    if (!query.has('fieldSelector')) return false
    sendStatus(response, 400, 'field label not supported: spec.color', 'BadRequest')
    return true
  }
  const { recorder } = await reflect(api.url, { resource: { ...widgets, fieldSelector: 'spec.color!=red' } })
  await until(() => recorder.lists === 1)
  expect(api.requests.map(({ query }) => query.get('fieldSelector'))).toEqual(['spec.color!=red', null])
})

it('stops at once when told so, whatever it is doing', async () => {
  const api = await startApi()
  const { recorder, stop, done } = await reflect(api.url)
  await until(() => recorder.lists === 1)
  stop.abort()
  await done
  await until(() => api.watchers === 0)

  const absent = await reflect('http://127.0.0.1:9', { timing: { backoff: { minMs: 60_000 } } })
  await until(() => absent.log.lines.some(({ level }) => level === 'error'))
  absent.stop.abort()
  await absent.done
})

it('does not mistake an open port of something else for a server', async () => {
  // A socket whose bytes nobody reads never closes.
  const server = createServer((socket) => socket.resume().end('SSH-2.0-OpenSSH_9.2\r\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => connect(port, '127.0.0.1').once('close', resolve).resume())
  const { log } = await reflect(`http://127.0.0.1:${port}`)
  await until(() => log.lines.some(({ level }) => level === 'error'))
  expect(log.text()).toContain('it does not answer in HTTP')
})
