import { describe, expect, test } from 'vitest'
import { nextSlots } from './slots.js'

const next = (before: string, wanted: string) => nextSlots([...before], [...wanted]).join('')

describe('slots', () => {
  test.each([
    ['', 'abc', 'abc', 'the first come in their order'],
    ['abc', 'abcd', 'abcd', 'who comes is last'],
    ['abcd', 'bcd', 'dbc', 'who goes leaves its slot to the last'],
    ['abcd', 'abc', 'abc', 'the last goes without a trace'],
    ['abcd', 'abxd', 'abxd', 'who comes takes the slot of who went'],
    ['abcd', 'dx', 'xd', 'several go, one comes'],
    ['abcd', '', '', 'all go'],
    ['abcde', 'be', 'eb', 'the last takes the first free slot'],
    ['abc', 'cba', 'abc', 'the order in which they are listed does not matter'],
    ['abc', 'aab', 'ab', 'who is listed twice counts once'],
  ])('%s → %s = %s: %s', (before, wanted, expected) => {
    expect(next(before, wanted)).toBe(expected)
  })

  test('gaps are filled', () => expect(nextSlots(['a', '', 'c'], ['a', 'c', 'd'])).toEqual(['a', 'd', 'c']))
})
