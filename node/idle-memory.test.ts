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

/** With times that are short, and what was logged. */
function releasing({ signal = new AbortController().signal, afterMs = 1 } = {}) {
  const said: string[] = []
  const log: Log = { ...silentLog, detail: (_, message) => void said.push(message) }
  return { said, synced: releaseMemoryWhenIdle({ log, signal, afterMs, againAfterMs: 1, quietMs: 1 }) }
}

const released = 'Unused memory was given back'

test('after the first sync, once nothing is synced, the space for new objects is small again', async () => {
  makeObjects()
  const large = newSpaceBytes()
  expect(large).toBeGreaterThan(4e6)
  const { said, synced } = releasing()
  synced()
  await expect.poll(() => said, { timeout: 90_000 }).toEqual([released])
  expect(newSpaceBytes()).toBeLessThan(large / 2)
})

test('again only if much memory was taken since', async () => {
  const { said, synced } = releasing()
  synced()
  await expect.poll(() => said, { timeout: 90_000 }).toEqual([released])
  synced()
  // Another one, which does release memory, ends after everything that the first could do.
  const other = releasing({ afterMs: 50 })
  other.synced()
  await expect.poll(() => other.said, { timeout: 90_000 }).toEqual([released])
  expect(said).toEqual([released])
  const taken = Buffer.alloc(100e6, 1)
  synced()
  await expect.poll(() => said, { timeout: 90_000 }).toEqual([released, released])
  expect(taken.length).toBe(100e6)
})

test.runIf(process.platform === 'linux')('the C library gives back what it has free', async () => {
  const givenBack: number[] = []
  const log: Log = { ...silentLog, detail: (_, __, fields) => void givenBack.push(Number(fields?.megabytes)) }
  const synced = releaseMemoryWhenIdle({ log, signal: new AbortController().signal, afterMs: 1, quietMs: 1 })
  const buffers = Array.from({ length: 40_000 }, () => Buffer.alloc(5000, 1))
  // What is behind the free part keeps the C library from giving it back by itself.
  const last = buffers.at(-1)
  buffers.length = 0
  synced()
  await expect.poll(() => givenBack, { timeout: 90_000 }).toHaveLength(1)
  expect(givenBack[0]).toBeGreaterThan(100)
  expect(last?.length).toBe(5000)
})

test('if pages of the program cannot be released, the rest is given back, and not tried again at once', async () => {
  const said: string[] = []
  const log: Log = { ...silentLog, detail: (_, message) => void said.push(message) }
  const releasePages = () => Promise.reject(new Error('there is no /proc'))
  const times = { afterMs: 1, againAfterMs: 600_000, quietMs: 1 }
  const synced = releaseMemoryWhenIdle({ log, signal: new AbortController().signal, ...times, releasePages })
  synced()
  await expect.poll(() => said, { timeout: 90_000 }).toEqual(['Pages of the program cannot be released', released])
  synced()
  const other = releasing({ afterMs: 50 })
  other.synced()
  await expect.poll(() => other.said, { timeout: 90_000 }).toEqual([released])
  expect(said).toHaveLength(2)
})

test('nothing happens after the end', async () => {
  const ended = new AbortController()
  const { said, synced } = releasing({ signal: ended.signal })
  ended.abort()
  synced()
  const other = releasing({ afterMs: 50 })
  other.synced()
  await expect.poll(() => other.said, { timeout: 90_000 }).toEqual([released])
  expect(said).toEqual([])
})
