import { describe, expect, test } from 'vitest'
import { type Layout, layOut, rowAt } from './map-layout.js'

const namespaces = (count: number, each: number) =>
  Array.from({ length: count * each }, (_, index) => `ns-${String(Math.floor(index / each)).padStart(4, '0')}`)

/** The middle of each cell, by row. */
const middles = ({ blocks, across, pitch }: Layout) =>
  blocks.flatMap(({ from, count, x, y }) =>
    Array.from({ length: count }, (_, index) => ({
      row: from + index,
      x: x + ((index % across) + 0.5) * pitch,
      y: y + (Math.floor(index / across) + 0.5) * pitch,
    })),
  )

describe.each([
  ['5,000 Services in 54 namespaces', namespaces(54, 93), 780, 450],
  ['one namespace', namespaces(1, 900), 780, 450],
  ['40 Services', namespaces(4, 10), 780, 450],
  ['a namespace for each Service', namespaces(3000, 1), 780, 450],
  ['a phone', namespaces(54, 93), 340, 260],
  ['more than fit', namespaces(60, 400), 600, 260],
])('%s', (_, names, width, height) => {
  const layout = layOut(names, width, height)
  test('each has one cell, inside the map, and is found there', () => {
    const cells = middles(layout)
    expect(cells.map(({ row }) => row)).toEqual(names.map((_, index) => index))
    const wrong = cells.filter(({ row, x, y }) => x > width || y > layout.height || rowAt(layout, x, y) !== row)
    expect(wrong).toEqual([])
  })
})

test('between cells is nobody', () => {
  const layout = layOut(namespaces(4, 10), 780, 450)
  expect(rowAt(layout, 779, 449)).toBeUndefined()
  expect(rowAt(layout, 1, 1)).toBeUndefined()
})

test('cells are as large as fits, in whole pixels of the screen', () => {
  expect(layOut(namespaces(4, 10), 780, 450).pitch).toBe(36)
  expect(layOut(namespaces(54, 93), 780, 450, 0.5).pitch % 0.5).toBe(0)
})

test('a namespace that goes on in the next column has its name there too', () => {
  const { blocks } = layOut(namespaces(7, 90), 480, 260)
  const parts = new Map<string, number>()
  for (const { label } of blocks) parts.set(label, (parts.get(label) ?? 0) + 1)
  expect(parts.has('')).toBe(false)
  expect(Math.max(...parts.values())).toBeGreaterThan(1)
})

test.each([5, 100, 5000])('on a phone, the cells of %i Services have at least 12 pixels', (count) => {
  const { pitch, across } = layOut(namespaces(1, count), 340, 260)
  // Two of them are the gap.
  expect(pitch - 2).toBeGreaterThanOrEqual(12)
  expect(across * pitch).toBeLessThanOrEqual(340)
})
