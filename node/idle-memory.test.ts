import { getHeapSpaceStatistics } from 'node:v8'
import { type Log, silentLog } from '@kpng/api'
import { expect, test } from 'vitest'
import { releaseMemoryWhenIdle } from './idle-memory.js'

const newSpaceBytes = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? Number.NaN

/** Makes many objects, of which the last ones survive. */
function makeObjects(): void {
  const kept: object[] = []
  for (let count = 0; count < 2_000_000; count++) kept[count % 100_000] = { count, list: [count] }
}

test('after the first sync, once nothing is synced, the space for new objects is small and stays so', async () => {
  const said: string[] = []
  const log: Log = { ...silentLog, detail: (_, message) => void said.push(message) }
  makeObjects()
  const large = newSpaceBytes()
  expect(large).toBeGreaterThan(4e6)
  const synced = releaseMemoryWhenIdle({ log, signal: new AbortController().signal, afterMs: 1, quietMs: 1 })
  synced()
  await expect.poll(() => said, { timeout: 30_000 }).toEqual(['Memory of the start was given back'])
  expect(newSpaceBytes()).toBeLessThan(large / 2)
  makeObjects()
  expect(newSpaceBytes()).toBeLessThan(large / 2)
})

test('nothing happens before the first sync, or after the end', async () => {
  const said: string[] = []
  const log: Log = { ...silentLog, detail: (_, message) => void said.push(message) }
  const ended = new AbortController()
  const options = { log, signal: ended.signal, afterMs: 1, quietMs: 1 }
  const synced = releaseMemoryWhenIdle(options)
  ended.abort()
  synced()
  // A second one, which does give memory back, comes after everything that the first could do.
  releaseMemoryWhenIdle({ ...options, signal: new AbortController().signal, afterMs: 20 })()
  await expect.poll(() => said.length, { timeout: 30_000 }).toBe(1)
})
