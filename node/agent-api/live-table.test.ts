import { expect, test } from 'vitest'
import { LiveTable } from './live-table.js'

test('what changed since an event, the last state of each row once', () => {
  const table = new LiveTable(5)
  table.apply(
    new Map([
      ['a', '1'],
      ['b', '1'],
    ]),
    5,
  )
  table.apply(new Map([['a', '2']]), 6)
  table.apply(
    new Map([
      ['a', '3'],
      ['b', null],
      ['c', '1'],
    ]),
    7,
  )
  expect(table.changedSince(5)).toEqual(
    new Map([
      ['a', '3'],
      ['b', null],
      ['c', '1'],
    ]),
  )
  expect(table.changedSince(7)).toEqual(new Map())
  expect([table.remembers(4), table.remembers(5)]).toEqual([false, true])
  expect(table.texts()).toBe('3,1')
})

test('of many rows that are gone the oldest are forgotten, and who needs them is told', () => {
  const table = new LiveTable(1)
  for (let number = 2; number <= 6002; number++) table.apply(new Map([[`row-${number}`, null]]), number)
  expect(table.remembers(1001)).toBe(false)
  expect(table.remembers(1002)).toBe(true)
  expect(table.changedSince(1002).size).toBe(5000)
})
