import { expect, it } from 'vitest'
import { keyFilter } from './globs.js'

const labels = { app: 'web', 'topology.kubernetes.io/zone': 'a', 'topology.kubernetes.io/region': 'r', 'a.b/c': '1' }

it.each([
  [[], []],
  [['*'], Object.keys(labels)],
  [['app'], ['app']],
  [['ap'], []],
  [['topology.kubernetes.io/*'], ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region']],
  [['*/{zone,c}'], ['topology.kubernetes.io/zone', 'a.b/c']],
  [['a?p'], ['app']],
  [['a.b/[abc]'], ['a.b/c']],
  [['a.b/[a-c]'], ['a.b/c']],
  [['a.b/[!c]'], []],
  [['a?b/c'], ['a.b/c']],
  [['a\\?b/c'], []],
  [['axb/c'], []],
  [
    ['app', 'a.*'],
    ['app', 'a.b/c'],
  ],
])('%j keeps %j', (globs, keys) => {
  expect(Object.keys(keyFilter(globs)(labels))).toEqual(keys)
})

it('takes a hyphen literally', () =>
  expect(keyFilter(['my-key', 'a\\-b'])({ 'my-key': '1', 'a-b': '2', my_key: '3' })).toEqual({
    'my-key': '1',
    'a-b': '2',
  }))

it('keeps the values', () => expect(keyFilter(['app'])(labels)).toEqual({ app: 'web' }))

it('takes a dot literally', () => expect(keyFilter(['a.b/c'])({ 'axb/c': '1' })).toEqual({}))

it.each(['', '[a', 'a]', '{a', 'a}', '[]', '[!]', '[z-a]', 'a\\'])('refuses %j as wrong usage', (glob) => {
  expect(() => keyFilter([glob])).toThrow(
    expect.objectContaining({ code: 'usage', message: expect.stringContaining(JSON.stringify(glob)) }),
  )
})
