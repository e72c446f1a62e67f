import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { loadConnection } from './connection.js'

async function ask(answer: (response: ServerResponse) => void) {
  const server = createServer((_, response) => answer(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const connection = await loadConnection({ server: `http://127.0.0.1:${port}`, env: {}, home: '/nonexistent' })
  onTestFinished(() => connection.close())
  const response = await connection.request({ path: '/api/v1/services' })
  response.body.resume()
  return response.status
}

const html = { 'content-type': 'text/html; charset=utf-8' }

it.each<[string, (response: ServerResponse) => void, RegExp]>([
  [
    'a web page',
    (response) => response.writeHead(200, html).end('<html>'),
    /with text\/html instead of JSON. It is not a Kubernetes API server/,
  ],
  ['no type', (response) => response.end('hello'), /with no JSON/],
  ['a login', (response) => response.writeHead(302, { location: 'https://login' }).end(), /with a redirect \(302\)/],
  ['a page not found', (response) => response.writeHead(404, html).end('<html>'), /with a web page \(404\)/],
  [
    '400 in text',
    (response) => response.writeHead(400, { 'content-type': 'text/plain' }).end('?'),
    /400 in plain text/,
  ],
])('refuses %s', async (_, answer, message) => {
  await expect(ask(answer)).rejects.toThrow(message)
})

it.each<[number, Record<string, string>]>([
  [404, { 'content-type': 'text/plain' }],
  [502, html],
  [503, {}],
])('hands on %i as it is: a server or its load balancer may say so', async (status, headers) => {
  expect(await ask((response) => response.writeHead(status, headers).end('no'))).toBe(status)
})
