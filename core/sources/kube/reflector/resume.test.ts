import { expect, it } from 'vitest'
import { sleep, until } from '../../../testing/until.js'
import { sendStatus } from '../testing/fake-api.js'
import { reflect, startApi, widget, widgetsPath } from '../testing/reflecting.js'

async function watching() {
  const api = await startApi()
  for (const name of ['a', 'b', 'c']) api.set(widgetsPath, widget(name))
  const reflecting = await reflect(api.url)
  await until(() => reflecting.recorder.lists === 1)
  reflecting.recorder.take()
  return { api, ...reflecting }
}

it('goes on at the last version when the server ends a watch', async () => {
  const { api, recorder } = await watching()
  api.set(widgetsPath, widget('b', { changed: true }))
  await until(() => recorder.notes.includes('+b@104'))
  await sleep(120)
  api.endWatches()
  await until(() => api.requests.length === 2)
  expect(api.requests[1]).toMatchObject({ kind: 'watch' })
  expect(api.requests[1]?.query.get('resourceVersion')).toBe('104')
  api.set(widgetsPath, widget('d'))
  await until(() => recorder.notes.includes('+d@105'))
  expect(recorder.take()).toEqual(['+b@104', '+d@105'])
  expect(recorder.lists).toBe(1)
})

it('goes on at the version of a bookmark', async () => {
  const { api } = await watching()
  api.set('/elsewhere', widget('x'))
  api.bookmark()
  await sleep(120)
  api.endWatches()
  await until(() => api.requests.length === 2)
  expect(api.requests[1]?.query.get('resourceVersion')).toBe('104')
})

it('gets what happened while the connection was lost, in order', async () => {
  const { api, recorder, log } = await watching()
  api.dropConnections()
  api.set(widgetsPath, widget('a', { n: 1 }))
  api.set(widgetsPath, widget('a', { n: 2 }))
  api.remove(widgetsPath, 'b', 'default')
  await until(() => recorder.notes.includes('-b'))
  expect(recorder.take()).toEqual(['+a@104', '+a@105', '-b'])
  expect(log.lines.some(({ message }) => message === 'Kubernetes can be read again')).toBe(true)
})

it('drops half a line at the end of a watch and gets the whole event in the next one', async () => {
  const { api, recorder } = await watching()
  await sleep(120)
  let cut = false
  api.intercept = ({ kind }, response) => {
    if (kind !== 'watch' || cut) return false
    cut = true
    response.writeHead(200, { 'content-type': 'application/json' })
    const line = JSON.stringify({ type: 'MODIFIED', object: api.objects(widgetsPath)[0] })
    response.end(line.slice(0, 30))
    return true
  }
  api.endWatches()
  await until(() => cut)
  api.set(widgetsPath, widget('a', { n: 1 }))
  await until(() => recorder.notes.includes('+a@104'))
  expect(recorder.take()).toEqual(['+a@104'])
})

it.each(['as an event', 'as an HTTP status'])(
  'lists again after 410 %s, and hands on only differences',
  async (how) => {
    const { api, recorder, log } = await watching()
    let gone = false
    api.intercept = ({ kind }, response) => {
      if (how === 'as an event' || kind !== 'watch' || gone) return false
      gone = true
      sendStatus(response, 410, 'too old resource version', 'Gone')
      return true
    }
    api.dropConnections()
    api.set(widgetsPath, widget('b', { changed: true }))
    api.set(widgetsPath, widget('d'))
    api.remove(widgetsPath, 'c', 'default')
    api.compact()
    api.set('/elsewhere', widget('x'))
    await until(() => recorder.lists === 2)
    expect(recorder.take()).toEqual(['+b@104', '+d@105', '-c', 'listed'])
    expect(log.lines.filter(({ level, message }) => level === 'error' && !message.includes('cannot be read'))).toEqual(
      [],
    )
  },
)

it('takes everything anew when the server knows less than it did: after a restore, versions are given out twice', async () => {
  const { api, recorder } = await watching()
  let told = false
  api.intercept = ({ kind }, response) => {
    if (kind !== 'watch' || told) return false
    told = true
    sendStatus(response, 504, 'Timeout: Too large resource version: 103, current: 7', 'Timeout')
    return true
  }
  await sleep(120)
  api.endWatches()
  await until(() => recorder.lists === 2)
  expect(recorder.take()).toEqual(['+a@101', '+b@102', '+c@103', 'listed'])
})

it('lists again when a watch brings something that is no event', async () => {
  const { api, recorder, log } = await watching()
  api.set(widgetsPath, widget('d'))
  api.sendToWatchers('no event')
  await until(() => recorder.lists === 2)
  expect(recorder.take()).toEqual(['+d@104', 'listed'])
  expect(log.text()).toContain('not a watch event')
})

it.each([410, 500])('hands over an event that arrives together with an error (%i), once', async (code) => {
  const { api, recorder } = await watching()
  api.dropConnections()
  const object = api.set(widgetsPath, widget('d'))
  let sent = 0
  api.intercept = ({ kind }, response) => {
    if (kind !== 'watch' || sent++ > 0) return false
    const lines = [
      { type: 'ADDED', object },
      { type: 'ERROR', object: { kind: 'Status', code } },
    ].map((event) => `${JSON.stringify(event)}\n`)
    response.writeHead(200, { 'content-type': 'application/json' }).end(lines.join(''))
    return true
  }
  await until(() => (code === 410 ? recorder.lists === 2 : api.watchers === 1 && sent > 1))
  expect(recorder.take()).toEqual(code === 410 ? ['+d@104', 'listed'] : ['+d@104'])
})

it('resumes after an ERROR event that is not about the version', async () => {
  const { api, recorder } = await watching()
  api.sendToWatchers({ type: 'ERROR', object: { kind: 'Status', code: 500, message: 'etcd is away' } })
  await until(() => api.requests.length === 2)
  expect(api.requests[1]?.kind).toBe('watch')
  expect(recorder.lists).toBe(1)
})

it('lists again after three watches in a row that were accepted and then failed', async () => {
  const { api, recorder, status } = await watching()
  api.set(widgetsPath, widget('d'))
  await until(() => recorder.notes.includes('+d@104'))
  let failing = 0
  api.intercept = ({ kind }, response) => {
    // The server has lost what happened since: it accepts the watch, and cannot go on.
    if (kind !== 'watch') return false
    failing++
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 500 } })}\n`)
    return true
  }
  const listsAtConnected: number[] = []
  const { connected: isConnected } = status
  status.connected = () => {
    listsAtConnected.push(recorder.lists)
    isConnected.call(status)
  }
  api.dropConnections()
  api.remove(widgetsPath, 'a', 'default')
  await until(() => recorder.lists === 2)
  await until(() => status.isConnected)
  // A watch that only failed was never connected: the list is.
  expect([failing, ...new Set(listsAtConnected)]).toEqual([3, 2])
  expect(recorder.take()).toEqual(['+d@104', '-a', 'listed'])
})

it('lists again after three watches in a row that ended at once', async () => {
  const { api, recorder, status } = await watching()
  let ended = 0
  api.intercept = ({ kind }, response) => {
    if (kind !== 'watch') return false
    ended++
    response.writeHead(200, { 'content-type': 'application/json' }).end()
    return true
  }
  api.dropConnections()
  await until(() => ended === 1)
  await until(() => !status.isConnected)
  await until(() => recorder.lists === 2)
  expect(ended).toBe(3)
})

it('does not list again if each watch brings something before it fails', async () => {
  const { api, recorder } = await watching()
  let opened = 0
  api.intercept = ({ kind }, response) => {
    if (kind !== 'watch' || opened++ > 5) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    const object = { metadata: { resourceVersion: api.version } }
    const error = { type: 'ERROR', object: { kind: 'Status', code: 500 } }
    response.end(`${JSON.stringify({ type: 'BOOKMARK', object })}\n${JSON.stringify(error)}\n`)
    return true
  }
  api.dropConnections()
  await until(() => opened > 5 && api.watchers === 1)
  expect(recorder.lists).toBe(1)
})

it('does not mind unknown kinds of events', async () => {
  const { api, recorder } = await watching()
  api.sendToWatchers({ type: 'SURPRISE', object: {} })
  api.set(widgetsPath, widget('d'))
  await until(() => recorder.notes.includes('+d@104'))
  expect(api.requests).toHaveLength(1)
})

it('deletes what it is told of only once', async () => {
  const { api, recorder } = await watching()
  api.remove(widgetsPath, 'a', 'default')
  api.sendToWatchers({ type: 'DELETED', object: { metadata: { name: 'never-seen', namespace: 'default' } } })
  api.set(widgetsPath, widget('d'))
  await until(() => recorder.state.has('d'))
  expect(recorder.take()).toEqual(['-a', '+d@105'])
})
