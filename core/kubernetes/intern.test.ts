import { expect, it } from 'vitest'
import { internTable } from './endpoint-slice.js'

it('gives back the first of equal texts, and forgets when it is full', () => {
  const intern = internTable(2)
  expect([intern('a'), intern('b'), intern('a'), intern('c'), intern('a')]).toEqual(['a', 'b', 'a', 'c', 'a'])
})
