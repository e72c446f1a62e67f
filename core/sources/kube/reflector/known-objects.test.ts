import { expect, it } from 'vitest'
import { KnownObjects } from './reflector.js'

it('tells a new version from a known one', () => {
  const known = new KnownObjects()
  expect([known.set('a', '1'), known.set('a', '1'), known.set('a', '2')]).toEqual([true, false, true])
  expect([known.delete('a'), known.delete('a'), known.set('a', '2')]).toEqual([true, false, true])
})

it('finds what a list no longer has', () => {
  const known = new KnownObjects()
  for (const key of ['a', 'b', 'c']) known.set(key, '1')
  known.startList()
  known.set('b', '1')
  known.set('new', '1')
  known.delete('c')
  expect(known.endList()).toEqual(['a'])
  expect(known.size).toBe(2)
})

it('starts a list over', () => {
  const known = new KnownObjects()
  for (const key of ['a', 'b']) known.set(key, '1')
  known.startList()
  known.set('a', '1')
  known.startList()
  known.set('b', '1')
  expect(known.endList()).toEqual(['a'])
})

it('takes whatever comes for new once versions are forgotten, and still finds what is gone', () => {
  const known = new KnownObjects()
  for (const key of ['a', 'b']) known.set(key, '1')
  known.forgetVersions()
  known.startList()
  expect([known.set('a', '1'), known.set('a', '1')]).toEqual([true, false])
  expect(known.endList()).toEqual(['b'])
})

it('compares nothing where there are no versions', () => {
  const known = new KnownObjects()
  expect([known.set('a', ''), known.set('a', '')]).toEqual([true, true])
})
