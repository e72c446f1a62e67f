import { test } from 'vitest'
import { pause } from './stop.js'

test('ends a wait early when told so', async () => {
  const stop = new AbortController()
  const waited = pause(60_000, stop.signal)
  stop.abort()
  await waited
  await pause(60_000, stop.signal)
})
