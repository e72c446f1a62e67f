import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { listOf, mapOf, textOf } from './yaml-text.js'

it.each([
  ['web', 'web'],
  ['web-1.example/x', 'web-1.example/x'],
  ['10.0.0.1', '10.0.0.1'],
  ['ClusterIP', 'ClusterIP'],
  ['', '""'],
  ['fd00::1', '"fd00::1"'],
  ['yes', '"yes"'],
  ['No', '"No"'],
  ['null', '"null"'],
  ['1.5', '"1.5"'],
  ['0x10', '"0x10"'],
  ['2026-01-01', '"2026-01-01"'],
  ['a: b', '"a: b"'],
  ['- a', '"- a"'],
  ['a\nb', '"a\\nb"'],
  ['\u0085\ufeff', '"\\u0085\\ufeff"'],
])('%j is written as %s', (value, text) => expect(textOf(value)).toBe(text))

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[-a-z0-9:.#'"[\]{}, ~+_]{0,8}$/))

it('any text reads back as itself, in YAML 1.1 and 1.2', () => {
  fc.assert(
    fc.property(text, fc.constantFrom('1.1' as const, '1.2' as const), (value, version) => {
      expect(parse(`a: ${textOf(value)}\n`, { version })).toEqual({ a: value })
    }),
    { numRuns: 1000 },
  )
})

it('so do lists and maps', () => {
  fc.assert(
    fc.property(
      fc.array(text),
      fc.dictionary(
        text.filter((key) => key !== '__proto__'),
        text,
      ),
      (list, map) => {
        expect(parse(`${listOf('', 'list', list)}${mapOf('', 'map', map)}`)).toEqual({ list, map: { ...map } })
      },
    ),
  )
})
