import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { sleep, until } from '../../../testing/until.js'
import { sendStatus } from '../testing/fake-api.js'
import { reflect, startApi, widget, widgetsPath } from '../testing/reflecting.js'

// Waits of 10, 20, 40, 80, 80, … ms, each jittered down to no less than half of it: at most 5 + 10 + 20 + 40 × n.
const most = (ms: number) => 3 + Math.ceil((ms - 35) / 40) + 1

const opened = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  return response
}

const answering = (code: number) => (_: unknown, response: ServerResponse) => {
  sendStatus(response, code, 'no')
  return true
}

const servers: readonly (readonly [string, (kind: string, response: ServerResponse) => boolean])[] = [
  ['ends each watch at once', (kind, response) => kind !== 'list' && !!opened(response).end()],
  [
    'ends each watch after an event',
    (kind, response) => {
      if (kind === 'list') return false
      opened(response).end(`${JSON.stringify({ type: 'ADDED', object: widget('a') })}\n`)
      return true
    },
  ],
  [
    'answers each watch with 410 as an event',
    (kind, response) => {
      if (kind === 'list') return false
      opened(response).end(`${JSON.stringify({ type: 'ERROR', object: { code: 410 } })}\n`)
      return true
    },
  ],
  ['answers everything with 410', answering(410)],
  ['answers everything with 500', answering(500)],
  ['answers everything with 429', answering(429)],
  ['answers everything with 403', answering(403)],
  ['answers everything with 404', answering(404)],
  ['answers everything with 422', answering(422)],
  ['resets every connection', (_, response) => !!response.socket?.resetAndDestroy()],
  ['sends nonsense in every watch', (kind, response) => kind !== 'list' && !!opened(response).end('nonsense\n')],
]

it.each(servers)('does not bother a server that %s', async (_, serve) => {
  const api = await startApi()
  api.set(widgetsPath, widget('a'))
  api.intercept = ({ kind }, response) => serve(kind, response)
  const startedAt = performance.now()
  await reflect(api.url)
  await Promise.all([sleep(400), until(() => api.requests.length > 3)])
  // A round may be a list and a watch, and a streaming list that is refused before them.
  expect(api.requests.length).toBeLessThanOrEqual(2 * most(performance.now() - startedAt) + 2)
})

it('asks refused credentials at most twice a round', async () => {
  const api = await startApi()
  api.intercept = answering(401)
  const startedAt = performance.now()
  await reflect(api.url)
  await sleep(400)
  expect(api.requests.length).toBeLessThanOrEqual(2 * most(performance.now() - startedAt))
})
