import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { locateInLongYaml, locateInPlainYaml, readLongYaml, readPlainYaml } from './plain-yaml.js'

/** What the full parser makes of a text; undefined when it finds a mistake. */
function full(text: string): unknown[] | undefined {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return []
  if (documents.some(({ errors }) => errors.length > 0)) return undefined
  return documents.map((document) => document.toJS())
}

describe('what it reads', () => {
  it.each([
    ['', []],
    ['# nothing\n\n', []],
    ['a: 1', [{ a: 1 }]],
    ['a: 1\nb: two # why\n', [{ a: 1, b: 'two' }]],
    ['a:\n- 1\n- 2\nb:\n  - x', [{ a: [1, 2], b: ['x'] }]],
    [
      '- a: 1\n  b:\n    c: null\n-   d: 2\n    e:\n- - 1\n  - 2\n-\n- x',
      [[{ a: 1, b: { c: null } }, { d: 2, e: null }, [1, 2], null, 'x']],
    ],
    [
      'a: {}\nb: []\nc: { v4: [ 12.0.0.1, x ], v6: [ "fd2a::2a" ] }',
      [{ a: {}, b: [], c: { v4: ['12.0.0.1', 'x'], v6: ['fd2a::2a'] } }],
    ],
    ['a: ""\nb: \'it\'\'s\'\nc: "a\\n\\"b\\" # c"\n"d e": ~', [{ a: '', b: "it's", c: 'a\n"b" # c', 'd e': null }]],
    [
      'kubernetes.io/hostname: vm-001\nip: ::1\nneg: -5\nhalf: 0.5\nyes: yes\nT: True',
      [{ 'kubernetes.io/hostname': 'vm-001', ip: '::1', neg: -5, half: 0.5, yes: 'yes', T: true }],
    ],
    ['a: 1\n---\nb: 2\n---\n', [{ a: 1 }, { b: 2 }, null]],
    ['---\na: 1\n', [{ a: 1 }]],
    ['just text', ['just text']],
  ])('%j', (text, expected) => {
    expect(readPlainYaml(text)).toEqual(expected)
    expect(full(text)).toEqual(expected)
  })
})

describe('what it leaves to the full parser', () => {
  it.each([
    ['anchors', 'a: &x 1\nb: *x'],
    ['tags', 'a: !!str 1'],
    ['block scalars', 'a: |\n  text\n'],
    ['scalars over several lines', 'a: one\n  two'],
    ['flow over several lines', 'a: [1,\n  2]'],
    ['tabs', 'a:\t1'],
    ['a key twice', 'a: 1\na: 2'],
    ['keys that are no text', '1: a'],
    ['explicit keys', '? a\n: b'],
    ['merge keys', '<<: a'],
    ['directives', '%YAML 1.2\n---\na: 1'],
    ['document ends', 'a: 1\n...\n'],
    ['wrong indentation', 'a: 1\n  b: 2'],
    ['an unclosed quote', 'a: "x'],
    ['an unclosed list', 'a: [1'],
    ['two values', 'a: b: c'],
    ['__proto__', '__proto__: 1'],
    ['a list in a map', 'a: 1\n- b'],
  ])('%s', (_, text) => expect(readPlainYaml(text)).toBeUndefined())
})

describe('it agrees with the full parser', () => {
  const scalar = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.stringMatching(/^[-a-z0-9:.#'"[\]{}, ~+]{0,8}$/),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(
      'null',
      'true',
      'No',
      '~',
      '0x10',
      '1e3',
      '.5',
      '-',
      '---',
      '...',
      'a: b',
      'a #b',
      '::1',
      '10.0.0.1',
      null,
      true,
      false,
    ),
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(fc.stringMatching(/^[a-z./-]{1,8}$/), fc.string({ maxLength: 4 })), tie('value'), {
        maxKeys: 4,
      }),
    ),
  }))

  it('on whatever a program writes', () => {
    let read = 0
    const options = fc.record({
      indentSeq: fc.boolean(),
      collectionStyle: fc.constantFrom('any' as const, 'block' as const, 'flow' as const),
      lineWidth: fc.constantFrom(0, 80),
      defaultStringType: fc.constantFrom('PLAIN' as const, 'QUOTE_DOUBLE' as const, 'QUOTE_SINGLE' as const),
    })
    fc.assert(
      fc.property(value, options, (data, style) => {
        const text = stringify(data, style)
        const plain = readPlainYaml(text)
        if (plain === undefined) return
        read++
        expect(plain).toEqual(full(text))
      }),
      { numRuns: 2000 },
    )
    expect(read).toBeGreaterThan(500)
  })

  it('on whatever people mistype', () => {
    const line = fc
      .tuple(
        fc.constantFrom('', ' ', '  ', '    '),
        fc.array(
          fc.constantFrom(
            'a',
            'b:',
            'c: ',
            '- ',
            '-',
            '"',
            "'",
            '[',
            ']',
            '{',
            '}',
            ', ',
            ',',
            '# x',
            ' #',
            ':',
            '1',
            ' ',
            '---',
            '~',
            '\\',
            '"q"',
            '[a]',
            '{a: 1}',
            '?',
            '&x',
            '*',
            '!',
            '|',
            '>',
            '%',
            '@',
          ),
          { maxLength: 5 },
        ),
      )
      .map(([indent, parts]) => indent + parts.join(''))
    let read = 0
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
        const text = lines.join('\n')
        const plain = readPlainYaml(text)
        if (plain === undefined) return
        read++
        expect({ text, read: plain }).toEqual({ text, read: full(text) })
      }),
      { numRuns: 20_000 },
    )
    expect(read).toBeGreaterThan(1000)
  })
})

describe('long texts', () => {
  const readItem = (text: string) => (full(text) as unknown[][])[0]?.[0]

  it('only items that are not plain go to the full parser', () => {
    const text = 'a:\n- x: 1\n- x: |\n    two\n\n# c\n    lines\n- x:\t3\n- y:\n  - *no\n  - 2\nb: 1\n'
    const items: unknown[] = []
    const documents = readLongYaml(text, (item, line) => {
      items.push([item, line])
      return 'item'
    })
    expect(documents).toEqual([{ a: [{ x: 1 }, 'item', 'item', { y: ['item', 2] }], b: 1 }])
    expect(items).toEqual([
      ['- x: |\n    two\n\n# c\n    lines\n', 3],
      ['- x:\t3\n', 8],
      ['  - *no\n', 10],
    ])
  })

  it('mistakes outside of items have a position', () => {
    expect(readLongYaml('a:\n- 1\nb: c: d\n', readItem)).toEqual({ line: 3, column: 4 })
  })

  it('a value inside of an item that is not plain is located by the item', () => {
    expect(locateInLongYaml('a:\n- x: 1\n- x: |\n    b\n  y: 2\n', 0, ['a', 1, 'y'])).toEqual({ line: 3, column: 1 })
    expect(locateInLongYaml('a:\n- x: 1\n- x: |\n    b\n  y: 2\n', 0, ['a', 0, 'x'])).toEqual({ line: 2, column: 6 })
  })

  it('it agrees with the full parser', () => {
    const scalar = fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.constantFrom('two\nlines\n', 'a\n\n b\n', '\tx', 'long '.repeat(30)),
    )
    const item = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,4}$/),
      fc.oneof(scalar, fc.array(fc.record({ x: scalar }), { maxLength: 2 })),
      { maxKeys: 3 },
    )
    let read = 0
    fc.assert(
      fc.property(fc.array(item, { maxLength: 4 }), fc.boolean(), (services, indentSeq) => {
        const text = stringify({ services }, { indentSeq })
        const documents = readLongYaml(text, readItem)
        if (!Array.isArray(documents)) return
        read++
        expect(documents).toEqual(full(text))
      }),
      { numRuns: 500 },
    )
    expect(read).toBeGreaterThan(450)
  })
})

describe('positions', () => {
  const text = 'a: 1\n---\nservices:\n- service:\n    name: x\n    ports: none\n    ips: { v4: [a, b] }\n'
  it.each([
    [1, ['services', 0, 'service', 'ports'], 6, 12],
    [1, ['services', 0, 'service'], 4, 3],
    [1, ['services', 0], 4, 1],
    [1, ['services', 0, 'service', 'ips', 'v4', 1], 7, 20],
    [0, ['a'], 1, 4],
    [0, [], 1, 1],
  ])('document %j, %j', (document, place, line, column) => {
    expect(locateInPlainYaml(text, document, place)).toEqual({ line, column })
  })
})
