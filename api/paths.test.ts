import { expect, it } from 'vitest'
import { isName, nameProblem } from './paths.js'

it.each(['web', 'web-1.example', 'A_b:c', 'größe', 'x'.repeat(253)])('%j is a name', (name) => {
  expect(isName(name)).toBe(true)
})

it.each([
  ['', 'empty'],
  ['a/b', '"/"'],
  ['a|b', '"|"'],
  ['größe/b', '"/"'],
  ['a b', 'blank'],
  ['a\nb', 'control'],
  ['a\u0000', 'control'],
  ['a\u007f', 'control'],
  ['a\u00a0b', 'blank'],
  ['a\u200bb', 'control'],
  ['x'.repeat(254), '253'],
])('%j is not a name', (name, why) => {
  expect(nameProblem(name)).toContain(why)
})
