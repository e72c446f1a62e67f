import { expect, it } from 'vitest'
import { isName, isPort, nameProblem } from './paths.js'

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

it.each([1, 80, 65_535])('%j is a port', (port) => expect(isPort(port)).toBe(true))
it.each([0, 65_536, 1.5, '80', undefined])('%j is not a port', (port) => expect(isPort(port)).toBe(false))
