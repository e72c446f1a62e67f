import { describe, expect, test } from 'vitest'
import { MapFull, Runs } from './runs.js'

describe('runs of numbers', () => {
  test('are aligned powers of two, and never contain 0', () => {
    const runs = new Runs('slots', 16)
    expect(runs.take(1)).toBe(1)
    expect(runs.take(3) % 4).toBe(0)
    expect(runs.take(8)).toBe(8)
    expect(() => runs.take(5)).toThrow(MapFull)
    expect(runs.take(2)).toBe(2)
    expect(() => runs.take(1)).toThrow('The map slots is full.')
  })

  test('become one again when they are given back', () => {
    const runs = new Runs('slots', 16)
    const taken = Array.from({ length: 15 }, () => runs.take(1))
    expect(new Set(taken).size).toBe(15)
    for (const start of taken) runs.give(start, 1)
    expect(runs.take(8)).toBe(8)
    expect(runs.free).toBe(7)
  })

  test('that are in use already can be reserved once', () => {
    const runs = new Runs('slots', 16)
    expect(runs.reserve(4, 3)).toBe(true)
    expect(runs.reserve(6, 1)).toBe(false)
    expect(runs.reserve(5, 2)).toBe(false)
    expect(runs.free).toBe(11)
    expect(runs.take(8)).toBe(8)
    expect([runs.take(1), runs.take(2)]).toEqual([1, 2])
    expect(() => runs.take(1)).toThrow(MapFull)
  })

  test('a random sequence never hands out a number twice, and everything comes back', () => {
    const runs = new Runs('slots', 1024)
    const random = (below: number) => Math.floor(Math.random() * below)
    const inUse = new Map<number, number>()
    const used = new Set<number>()
    for (let step = 0; step < 5000; step++) {
      const starts = [...inUse.keys()]
      if (random(2) === 0 && starts.length > 0) {
        const start = starts[random(starts.length)] as number
        const count = inUse.get(start) as number
        runs.give(start, count)
        inUse.delete(start)
        for (let at = start; at < start + count; at++) used.delete(at)
      } else {
        const count = 1 + random(40)
        try {
          const start = runs.take(count)
          inUse.set(start, count)
          for (let at = start; at < start + count; at++) {
            expect(used.has(at) || at === 0 || at >= 1024).toBe(false)
            used.add(at)
          }
        } catch (error) {
          expect(error).toBeInstanceOf(MapFull)
        }
      }
    }
    for (const [start, count] of inUse) runs.give(start, count)
    expect(runs.free).toBe(1023)
  })
})
