import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { hostProblem, originProblem } from './http-origin.js'

const asked = (headers: Record<string, string>, method = 'GET') => ({ method, headers }) as unknown as IncomingMessage

test.each([
  ['10.0.0.5:10249', true],
  ['[fd00::1]:10249', true],
  ['[::1]', true],
  ['localhost:10249', true],
  ['LOCALHOST.', true],
  ['worker-1:10249', true],
  ['kpng.kube-system.svc:10249', true],
  ['evil.example:10249', false],
  ['worker-1.evil.example', false],
  ['localhost.evil.example', false],
  ['10.0.0.5.evil.example', false],
  ['svc', false],
  ['evilsvc', false],
  ['', false],
  ['[::1', false],
])('the host %s: %s', (host, known) => {
  expect(hostProblem(asked({ host }), ['worker-1', '.svc']) === undefined).toBe(known)
})

test('a request without a host, as HTTP/1.0 has it, is no browser', () => {
  expect(hostProblem(asked({}), [])).toBeUndefined()
})

const host = '127.0.0.1:10249'
test.each([
  ['a program', { host }, true, true],
  ['the same page', { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }, true, true],
  ['typed by hand', { host, 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, true, true],
  ['a link from another site', { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, true, false],
  ['another site', { host, origin: 'https://evil.example' }, false, false],
  ['another port', { host, origin: 'http://127.0.0.1:80' }, false, false],
  ['a sandboxed page', { host, origin: 'null' }, false, false],
  ['an image on another site', { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, false, false],
  ['another port of the same site', { host, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' }, false, false],
])('%s', (_, headers, mayLook, mayChange) => {
  expect(
    [originProblem(asked(headers), false), originProblem(asked(headers), true)].map((problem) => !problem),
  ).toEqual([mayLook, mayChange])
})

test('a form of another site is not a link', () => {
  const headers = { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
  expect(originProblem(asked(headers, 'POST'), false)).toBeDefined()
})
