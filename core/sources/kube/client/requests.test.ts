import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { until } from '../../../testing/until.js'
import { temporaryFolder } from '../testing/certificates.js'
import { type KubeRequest, loadConnection, type RequestReport } from './connection.js'
import { readBody } from './errors.js'

const folder = temporaryFolder()
afterAll(folder.remove)

type Answer = (response: ServerResponse) => void
const json = { 'content-type': 'application/json' }
const answerMs = 60

/** A server whose answers, one after the other, are given; and a connection to it that notes what it reports. */
async function start(...answers: Answer[]) {
  const server = createServer((_, response) => answers.shift()?.(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`
  const kubeconfig = join(folder.path, host.replace(':', '-'))
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'x',
      clusters: [{ name: 'c', cluster: { server: `http://${host}/below` } }],
      users: [{ name: 'u', user: { token: 'abc' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    }),
  )
  const reports: RequestReport[] = []
  const connection = await loadConnection({ kubeconfig, env: {}, onRequest: (report) => reports.push(report) })
  onTestFinished(() => connection.close())
  const send = (request: Partial<KubeRequest> = {}) => connection.request({ path: '/api/v1/services', ...request })
  return { reports, host, send }
}

const status =
  (code: number): Answer =>
  (response) =>
    response.writeHead(code, json).end('{}')

/** The headers at once, the end of the body later. */
const slowBody: Answer = (response) => {
  response.writeHead(200, json).write('{')
  setTimeout(() => response.end('}'), answerMs)
}
const foreign: Answer = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
const hangUp: Answer = (response) => response.destroy()

test.each<[string, Answer[], Partial<KubeRequest>, [string, number | undefined][]]>([
  ['a list', [status(200)], {}, [['GET', 200]]],
  ['a post', [status(201)], { method: 'POST', body: '{}' }, [['POST', 201]]],
  ['a refusal', [status(403)], {}, [['GET', 403]]],
  [
    'credentials that have expired',
    [status(401), status(200)],
    {},
    [
      ['GET', 401],
      ['GET', 200],
    ],
  ],
  ['a login page', [foreign], {}, [['GET', 200]]],
  ['no answer', [hangUp], {}, [['GET', undefined]]],
])('%s', async (_, answers, request, expected) => {
  const { reports, host, send } = await start(...answers)
  await send(request).then(
    ({ body }) => readBody(body),
    () => {},
  )
  await until('all are reported', () => reports.length === expected.length)
  expect(reports).toEqual(
    expected.map(([method, code]) => ({ method, host, status: code, durationMs: expect.any(Number) })),
  )
})

test('a list takes until its end, a watch until its beginning', async () => {
  const { reports, send } = await start(slowBody, slowBody)
  await readBody((await send()).body)
  await until('the list is reported', () => reports.length === 1)
  expect(reports[0]?.durationMs).toBeGreaterThan(answerMs - 5)
  const watch = await send({ query: { watch: '1' } })
  expect(reports).toHaveLength(2)
  await readBody(watch.body)
  expect(reports).toHaveLength(2)
})

test('an answer that is thrown away is reported too', async () => {
  const { reports, send } = await start(slowBody)
  const { body } = await send({ method: 'POST', body: '{}' })
  body.destroy()
  await until('it is reported', () => reports.length === 1)
})
