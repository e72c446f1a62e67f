import { expect, test } from 'vitest'
import { ago, bytes, counted, duration, milliseconds } from './format.js'

test.each([
  [duration(400), '0 s'],
  [duration(42_900), '42 s'],
  [duration(600_000), '10 min'],
  [duration(11_541_000), '3 h 12 min'],
  [duration(7_199_000), '1 h 59 min'],
  [duration(400_000_000), '4 d'],
  [ago(300), 'just now'],
  [ago(11_541_000), '3 h ago'],
  [milliseconds(0.421), '0.42 ms'],
  [milliseconds(12.34), '12.3 ms'],
  [milliseconds(9.996), '10.0 ms'],
  [milliseconds(99.96), '100 ms'],
  [milliseconds(999.6), '1.0 s'],
  [milliseconds(2500), '2.5 s'],
  [milliseconds(42_000), '42 s'],
  [bytes(999), '999 B'],
  [bytes(1500), '1.5 kB'],
  [bytes(163_400_000), '163 MB'],
  [counted(1, 'Service'), '1 Service'],
  [counted(5000, 'Service'), '5,000 Services'],
])('%s', (text, expected) => {
  expect(text).toBe(expected)
})
