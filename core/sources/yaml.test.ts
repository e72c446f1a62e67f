import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { CORE_SCHEMA, dump } from 'js-yaml'
import { describe, expect, it } from 'vitest'
import { locate, readDocuments } from './yaml.js'

const read = (text: string) => readDocuments('f.yaml', text)

function mistake(text: string): string {
  try {
    read(text)
  } catch (error) {
    expect(error).toMatchObject({ name: 'KpngError', code: 'invalid' })
    return (error as Error).message
  }
  return ''
}

describe('what it reads', () => {
  it.each([
    ['', []],
    ['a: 1\nb: two # why\n', [{ a: 1, b: 'two' }]],
    ['a:\n- 1\n- 2\nb:\n  - x', [{ a: [1, 2], b: ['x'] }]],
    ['yes: yes\nday: 2026-01-01\nT: True\nip: ::1\n', [{ yes: 'yes', day: '2026-01-01', T: true, ip: '::1' }]],
    ['<<: a', [{ '<<': 'a' }]],
    ['a: &x [1]\nb: *x\n', [{ a: [1], b: [1] }]],
    ['a: |\n  two\n  lines\n', [{ a: 'two\nlines\n' }]],
    ['a: 1\n---\nb: 2\n', [{ a: 1 }, { b: 2 }]],
    ['a: 1\r\nb:\r\n  c: 2\r\n', [{ a: 1, b: { c: 2 } }]],
    ['{"a": [1, null]}', [{ a: [1, null] }]],
  ])('%j', (text, expected) => expect(read(text)).toEqual(expected))

  it('a key named __proto__ is a key', () => {
    const [document] = read('__proto__: { polluted: 1 }\n') as [object]
    expect(Object.keys(document)).toEqual(['__proto__'])
    expect('polluted' in document).toBe(false)
  })

  it('whatever a program writes', () => {
    const value = fc.jsonValue({ maxDepth: 4 }).filter((json) => !JSON.stringify(json).includes('-0'))
    fc.assert(
      fc.property(value, (json) => {
        expect(read(dump(json, { schema: CORE_SCHEMA }))).toEqual([json])
      }),
    )
  })

  it('keeps no part of the text in memory', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heapMb = () => {
      collect()
      return process.memoryUsage().heapUsed / 1e6
    }
    const before = heapMb()
    // One text may stay for a while: JavaScript remembers what the last regular expression was tried on.
    const kept = Array.from({ length: 5 }, () => read(`a: a-name-of-some-length\n# ${'x'.repeat(10_000_000)}\n`))
    expect(heapMb() - before).toBeLessThan(15)
    expect(kept).toHaveLength(5)
  })
})

describe('mistakes', () => {
  it.each([
    ['a: 1\na: 2\n', 'f.yaml:2:1: This is not valid YAML: duplicated mapping key.'],
    ['a:\n  b: "x\n  c: 1\n', 'f.yaml:2:6: This is not valid YAML: the quote is not closed.'],
    ['a: [1, 2', 'f.yaml:1:10: This is not valid YAML: unexpected end of the stream within a flow collection.'],
    ['a: !!js/function x', 'f.yaml:1:19: This is not valid YAML: unknown tag !<tag:yaml.org,2002:js/function>.'],
    ['a: *nothing', 'f.yaml:1:12: This is not valid YAML: unidentified alias "nothing".'],
  ])('%j', (text, message) => expect(mistake(text)).toBe(message))

  it.each([
    ['brackets', `a: ${'['.repeat(100_000)}`],
    ['brackets that are closed', `a: ${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['braces', '{a: '.repeat(100_000)],
    ['list items', '- '.repeat(100_000)],
  ])('too many nested %s', (_, text) => {
    expect(mistake(text)).toMatch(/^f\.yaml:1:\d+: Values are nested more than 100 levels deep\. Check the brackets\.$/)
  })
})

describe('aliases', () => {
  const bomb = (levels: number) =>
    Array.from({ length: levels }, (_, level) => {
      const inner = level === 0 ? 'x' : `*a${level - 1}`
      return `a${level}: &a${level} [${Array(10).fill(inner).join(', ')}]\n`
    }).join('')

  it('that stand for a few values are read', () => expect(read(bomb(3))).toHaveLength(1))

  it.each([
    ['that stand for billions of values', bomb(10)],
    ['that stand for themselves', 'b: 1\na: &a [ *a ]\n'],
  ])('%s are refused at once', (_, text) => {
    expect(mistake(text)).toMatch(/^f\.yaml:2:\d+: The aliases of this file stand for more than 1000000 values/)
  })

  it('a large file with a star in it has no aliases', () => {
    expect(read(`note: "*"\nlist: [${'1,'.repeat(1_100_000)}]\n`)).toHaveLength(1)
  })
})

describe('positions', () => {
  const text = `# comment
a: 1
---
services:
- service:
    name: x
    ports: none # comment
    ips: { v4: [a, "b"] }
    labels:
      # comment
      app: |
        text
    empty:
    anchor: &one two
  ? explicit
  : value
`
  it.each([
    [0, [], 'value', 2, 1],
    [0, ['a'], 'value', 2, 4],
    [0, ['a'], 'key', 2, 1],
    [1, ['services'], 'value', 5, 1],
    [1, ['services'], 'key', 4, 1],
    [1, ['services', 0], 'value', 5, 3],
    [1, ['services', 0, 'service'], 'value', 6, 5],
    [1, ['services', 0, 'service'], 'key', 5, 3],
    [1, ['services', 0, 'service', 'ports'], 'value', 7, 12],
    [1, ['services', 0, 'service', 'ports'], 'key', 7, 5],
    [1, ['services', 0, 'service', 'ips', 'v4', 1], 'value', 8, 20],
    [1, ['services', 0, 'service', 'labels', 'app'], 'value', 11, 12],
    [1, ['services', 0, 'service', 'empty'], 'value', 13, 5],
    [1, ['services', 0, 'service', 'anchor'], 'value', 14, 13],
    [1, ['services', 0, 'explicit'], 'key', 15, 5],
    [1, ['services', 0, 'service', 'missing', 'more'], 'value', 6, 5],
    [7, ['services'], 'value', 1, 1],
  ] as const)('document %j, %j, %s', (document, place, what, line, column) => {
    expect(locate(text, document, place, what)).toEqual({ line, column })
    expect(locate(text.replaceAll('\n', '\r\n'), document, place, what)).toEqual({ line, column })
  })

  it('of JSON too', () => {
    const json = JSON.stringify({ services: [{ service: { ports: 7 } }] }, null, '\t')
    expect(locate(json, 0, ['services', 0, 'service', 'ports'])).toEqual({ line: 5, column: 14 })
  })
})
