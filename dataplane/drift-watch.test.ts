import { silentLog } from '@kpng/api'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DriftWatch } from './drift-watch.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Looks every second. The test says what a look finds, and which sync was the last. */
function watching(look: () => Promise<string | undefined>) {
  const seen = { looks: 0, reasons: [] as string[], warnings: [] as string[], sync: 1 as number | undefined }
  const watch = new DriftWatch({
    intervalMs: 1000,
    lastSync: () => seen.sync,
    look: () => {
      seen.looks++
      return look()
    },
    onDrift: (reason) => void seen.reasons.push(reason),
    log: { ...silentLog, warn: (message) => void seen.warnings.push(message) },
  })
  return { watch, seen }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('what others changed is reported at each look, until the watch is closed', async () => {
  const { watch, seen } = watching(async () => 'a rule is gone')
  await vi.advanceTimersByTimeAsync(2500)
  expect(seen.reasons).toEqual(['a rule is gone', 'a rule is gone'])
  await watch.close()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(seen.looks).toBe(2)
})

test('nothing is looked for during a sync, and what was read during one does not count', async () => {
  const { watch, seen } = watching(async () => {
    seen.sync = 2
    return 'a rule is gone'
  })
  seen.sync = undefined
  await vi.advanceTimersByTimeAsync(1500)
  expect(seen.looks).toBe(0)
  seen.sync = 1
  await vi.advanceTimersByTimeAsync(1000)
  expect(seen).toMatchObject({ looks: 1, reasons: [] })
  await vi.advanceTimersByTimeAsync(1000)
  expect(seen).toMatchObject({ looks: 2, reasons: ['a rule is gone'] })
  await watch.close()
})

test('looking takes at most 2 % of the time', async () => {
  const { watch, seen } = watching(async () => void (await pause(1000)))
  await vi.advanceTimersByTimeAsync(51_000)
  expect(seen.looks).toBe(1)
  await vi.advanceTimersByTimeAsync(2000)
  expect(seen.looks).toBe(2)
  await vi.advanceTimersByTimeAsync(1000)
  await watch.close()
})

test('a look that fails is logged and repeated', async () => {
  const { watch, seen } = watching(async () => {
    throw new Error('no memory')
  })
  await vi.advanceTimersByTimeAsync(2500)
  expect(seen.warnings).toHaveLength(2)
  expect(seen.reasons).toEqual([])
  await watch.close()
})
