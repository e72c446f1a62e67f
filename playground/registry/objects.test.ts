import { describe, expect, it } from 'vitest'
import { clone, equal, freeze } from '../objects/json.js'
import { age, microTimestamp, timestamp } from '../objects/time.js'

describe('ages are those of kubectl', () => {
  const now = Date.parse('2030-01-10T00:00:00Z')
  it.each([
    [0, '0s'],
    [119, '119s'],
    [120, '2m'],
    [125, '2m5s'],
    [9 * 60 + 59, '9m59s'],
    [10 * 60 + 5, '10m'],
    [3600 * 2 + 60 * 3, '2h3m'],
    [3600 * 11, '11h'],
    [86400 * 3 + 3600 * 4, '3d4h'],
    [86400 * 30, '30d'],
  ])('%s seconds: %s', (seconds, text) => {
    expect(age(timestamp(now - seconds * 1000), now)).toBe(text)
  })
  it('an unknown time is said to be so', () => {
    expect(age(undefined)).toBe('<unknown>')
  })
  it('times have the forms of the API', () => {
    expect(timestamp(now)).toBe('2030-01-10T00:00:00Z')
    expect(microTimestamp(now)).toBe('2030-01-10T00:00:00.000000Z')
  })
})

describe('JSON data', () => {
  it('is copied, compared and frozen as a whole', () => {
    const original = { a: [{ b: 1 }], c: undefined }
    const copy = clone(original)
    expect(copy).toEqual({ a: [{ b: 1 }] })
    expect(copy.a[0]).not.toBe(original.a[0])
    expect(equal(original, copy)).toBe(true)
    expect(equal({ a: [1, 2] }, { a: [2, 1] })).toBe(false)
    expect(equal([], {})).toBe(false)
    const frozen = freeze(copy)
    expect(() => Object.assign(frozen.a[0] ?? {}, { b: 2 })).toThrow(TypeError)
  })
})
