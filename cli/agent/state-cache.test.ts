import { expect, test } from 'vitest'
import { originOf } from './state-cache.js'

test.each([
  ['file', undefined],
  ['replay', undefined],
  ['local', 'kpng at 10.0.0.5:12090'],
])('the state of %s is that of %s, and only that of a server is kept for a start', async (source, expected) => {
  expect(await originOf(source, { api: '10.0.0.5:12090' }, undefined)?.()).toBe(expected)
})
