import { expect, test } from 'vitest'
import { Deadlines } from './deadlines.js'

test('calls are due in the order of their times, whatever their duration; those that were taken back are not', () => {
  const deadlines = new Deadlines()
  const called: string[] = []
  const add = (fromMs: number, durationMs: number) =>
    deadlines.add(fromMs + durationMs, durationMs, () => called.push(`${fromMs}+${durationMs}`))
  expect(deadlines.next).toBeUndefined()
  add(0, 500)
  const takeBack = add(0, 100)
  add(50, 100)
  add(90, 20)
  expect(deadlines.next).toBe(100)
  takeBack()
  expect(deadlines.next).toBe(110)
  const run = (nowMs: number) => {
    for (const call of deadlines.due(nowMs)) call()
    return called.splice(0)
  }
  expect(run(109)).toEqual([])
  expect(run(110)).toEqual(['90+20'])
  expect(run(499).sort()).toEqual(['50+100'])
  expect(deadlines.next).toBe(500)
  expect(run(1000)).toEqual(['0+500'])
  expect(deadlines.next).toBeUndefined()
  add(1000, 500)
  expect(deadlines.next).toBe(1500)
})
