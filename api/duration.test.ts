import { expect, test } from 'vitest'
import { formatDuration, parseDuration } from './duration.js'

test.each([
  ['0', 0],
  ['0s', 0],
  ['30s', 30_000],
  ['24h0m0s', 86_400_000],
  ['1h30m', 5_400_000],
  ['500ms', 500],
  ['1.5s', 1500],
  ['.5s', 500],
  ['100us', 0.1],
  ['-2s', -2000],
  ['', undefined],
  ['30', undefined],
  ['s', undefined],
  ['1 s', undefined],
  ['1s2', undefined],
])('%j', (text, expected) => {
  expect(parseDuration(text)).toBe(expected)
})

test.each([
  [0, '0s'],
  [250, '250ms'],
  [1500, '1.5s'],
  [90_000, '1m30s'],
  [60_000, '1m0s'],
  [86_400_000, '24h0m0s'],
])('%d ms', (ms, expected) => {
  expect(formatDuration(ms)).toBe(expected)
  expect(parseDuration(expected)).toBe(ms)
})
