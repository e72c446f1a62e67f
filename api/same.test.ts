import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isSame } from './same.js'

const leaf = fc.oneof(
  fc.constantFrom(undefined, null, '', 'a', 0, -0, 1, 1n, Number.NaN, true),
  fc.uint8Array({ maxLength: 2 }),
)
const key = fc.constantFrom('a', 'b', 'c')
const { value: data } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(key, { maxLength: 3 }).map((items) => new Set(items)),
  ),
}))

test('plain data is the same if Node says so', () => {
  fc.assert(
    fc.property(data, data, (a, b) => {
      expect(isSame(a, b)).toBe(isDeepStrictEqual(a, b))
      expect(isSame(a, structuredClone(a))).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
