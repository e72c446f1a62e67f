import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { noteTyping, TypingPause } from './typing.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('events come at once while nobody types', () => {
  const taken: number[] = []
  const pause = new TypingPause<number>((event) => taken.push(event))
  vi.advanceTimersByTime(10_000)
  pause.push(1)
  expect(taken).toEqual([1])
})

test('events wait until the keys rest, and keep their order', () => {
  const taken: number[] = []
  const pause = new TypingPause<number>((event) => taken.push(event))
  noteTyping()
  pause.push(1)
  vi.advanceTimersByTime(200)
  noteTyping()
  pause.push(2)
  vi.advanceTimersByTime(200)
  expect(taken).toEqual([])
  vi.advanceTimersByTime(100)
  expect(taken).toEqual([1, 2])
})

test('nothing waits longer than a second, even if somebody types on', () => {
  const taken: number[] = []
  const pause = new TypingPause<number>((event) => taken.push(event))
  noteTyping()
  pause.push(1)
  for (let key = 0; key < 11; key++) {
    noteTyping()
    vi.advanceTimersByTime(100)
  }
  expect(taken).toEqual([1])
})
