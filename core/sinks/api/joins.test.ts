import { afterEach, expect, test, vi } from 'vitest'
import { Joins } from './joins.js'

afterEach(() => void vi.useRealTimers())

async function entered(joins: Joins, names: readonly string[]) {
  const inside = new Map<string, () => void>()
  for (const name of names) void joins.enter().then((leave) => inside.set(name, leave))
  await Promise.resolve()
  await Promise.resolve()
  return inside
}

test('a limited number at a time, and the next in the order of asking', async () => {
  const inside = await entered(new Joins(2), ['a', 'b', 'c', 'd'])
  expect([...inside.keys()]).toEqual(['a', 'b'])
  inside.get('b')?.()
  await vi.waitFor(() => expect([...inside.keys()]).toEqual(['a', 'b', 'c']))
  // Leaving twice frees one slot.
  inside.get('b')?.()
  await new Promise((resolve) => setImmediate(resolve))
  expect(inside.has('d')).toBe(false)
  inside.get('a')?.()
  await vi.waitFor(() => expect(inside.has('d')).toBe(true))
})

test('one that is slow does not keep the others waiting', async () => {
  vi.useFakeTimers()
  const inside = await entered(new Joins(1), ['slow', 'next', 'last'])
  await vi.advanceTimersByTimeAsync(2000)
  expect([...inside.keys()]).toEqual(['slow', 'next'])
  inside.get('slow')?.()
  await vi.advanceTimersByTimeAsync(10)
  expect(inside.has('last')).toBe(false)
})
