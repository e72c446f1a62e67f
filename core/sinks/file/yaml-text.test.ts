import fc from 'fast-check'
import { CORE_SCHEMA, DEFAULT_SCHEMA, load, Type } from 'js-yaml'
import { expect, it } from 'vitest'
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

/** What YAML 1.1 reads as a flag or a number and YAML 1.2 as a text. */
const onlyInYaml11 = [
  /^(?:y|n|yes|no|on|off)$/i,
  /^[-+]?(?:0b[01_]+|0[0-7_]+|0x[\da-f_]+|\d[\d_]*(?::[0-5]?\d)*(?:\.[\d_]*)?(?:e[-+]\d+)?)$/i,
]
const yaml11 = DEFAULT_SCHEMA.extend({
  implicit: onlyInYaml11.map((pattern, index) => {
    const resolve = (value: string | null) => value !== null && pattern.test(value)
    return new Type(`yaml-1.1-${index}`, { kind: 'scalar', resolve, construct: () => ({ is: 'not a text' }) })
  }),
})

it.each(['yes', 'OFF', '1_000', '010', '190:20:30', '0x1F', '2026-01-01'])('%s is not a text in YAML 1.1', (value) => {
  expect(load(value, { schema: yaml11 })).not.toBe(value)
})

it('any text reads back as itself, in YAML 1.1 and 1.2', () => {
  fc.assert(
    fc.property(text, fc.constantFrom(yaml11, CORE_SCHEMA), (value, schema) => {
      expect(load(`a: ${textOf(value)}\n`, { schema })).toEqual({ a: value })
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
        expect(load(`${listOf('', 'list', list)}${mapOf('', 'map', map)}`)).toEqual({ list, map: { ...map } })
      },
    ),
  )
})
