import { expect, it } from 'vitest'
import { Backoff } from './timing.js'

it('doubles up to its cap', () => {
  const backoff = new Backoff({ minMs: 800, maxMs: 30_000, random: () => 1 })
  expect(Array.from({ length: 8 }, () => backoff.next())).toEqual([800, 1600, 3200, 6400, 12800, 25600, 30000, 30000])
})

it('is jittered between half and all of a wait', () => {
  expect(new Backoff({ minMs: 800, random: () => 0 }).next()).toBe(400)
  expect(new Backoff({ minMs: 800, random: () => 0.5 }).next()).toBe(600)
})

it('starts over after a healthy time, not after a short one', () => {
  const backoff = new Backoff({ minMs: 100, resetAfterMs: 1_000, random: () => 1 })
  expect([backoff.next(), backoff.next(999), backoff.next(1_000), backoff.next()]).toEqual([100, 200, 100, 200])
})
