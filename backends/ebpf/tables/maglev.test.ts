import { expect, test } from 'vitest'
import { maglevSlots, maglevTable } from './maglev.js'

const names = (count: number) => Array.from({ length: count }, (_, index) => `10.244.0.${index}:8080`)

test('each name has about the same number of slots', () => {
  const counts = new Map<string, number>()
  for (const name of maglevTable(names(10))) counts.set(name, (counts.get(name) ?? 0) + 1)
  expect(counts.size).toBe(10)
  for (const count of counts.values()) expect(Math.abs(count - maglevSlots / 10)).toBeLessThan(5)
})

test('the order of the names does not matter, and no name gives no table', () => {
  expect(maglevTable(names(7).reverse())).toEqual(maglevTable(names(7)))
  expect(maglevTable([])).toEqual([])
})

test('when a name goes, few slots of the others change', () => {
  const [before, after] = [maglevTable(names(10)), maglevTable(names(9))]
  const gone = names(10)[9]
  const moved = before.filter((name, index) => name !== gone && name !== after[index]).length
  expect(moved).toBeLessThan(maglevSlots * 0.1)
})
