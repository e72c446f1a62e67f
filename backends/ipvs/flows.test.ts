import { expect, test } from 'vitest'
import { asRedirected } from './flows.js'

const flow = { family: 'IPv4', destination: '192.0.2.1', destinationPort: 80, answeredByPort: 8080 } as const

test.each([
  ['10.244.1.1', false, true],
  ['192.0.2.1', false, false],
  ['192.0.2.1', true, true],
])('answered by %s, marked as redirected: %s; is redirected: %s', (answeredBy, isRedirected, expected) => {
  expect(asRedirected({ ...flow, answeredBy, isRedirected }).isRedirected).toBe(expected)
})
