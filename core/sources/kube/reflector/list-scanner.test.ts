import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ListScanner } from './list.js'

function scan(text: string, size: number) {
  const scanner = new ListScanner()
  const bytes = Buffer.from(text)
  const items: unknown[] = []
  for (let at = 0; at < bytes.length; at += size) {
    for (const item of scanner.push(bytes.subarray(at, at + size))) items.push(JSON.parse(item.toString('utf8')))
  }
  return { items, envelope: scanner.envelope() }
}

it('finds the items of any list, wherever the chunks are cut', () => {
  const item = fc.dictionary(fc.string(), fc.jsonValue())
  const metadata = fc.dictionary(fc.string(), fc.jsonValue())
  fc.assert(
    fc.property(
      fc.array(item),
      metadata,
      fc.boolean(),
      fc.boolean(),
      fc.integer({ min: 1, max: 50 }),
      (items, more, first, pretty, size) => {
        const list = first ? { items, metadata: more, other: [more] } : { kind: 'List', metadata: more, items }
        const found = scan(JSON.stringify(list, null, pretty ? 2 : 0), size)
        expect(found.items).toEqual(JSON.parse(JSON.stringify(items)))
        expect(found.envelope).toEqual({ ...JSON.parse(JSON.stringify(list)), items: [] })
      },
    ),
  )
})

it('does not mistake other arrays, or "items" deeper down, for the items', () => {
  const list = { metadata: { items: [{ no: 1 }] }, columns: [{ no: 2 }], items: [{ items: [{ yes: 1 }] }] }
  expect(scan(JSON.stringify(list), 5)).toEqual({ items: [{ items: [{ yes: 1 }] }], envelope: { ...list, items: [] } })
})

it.each(['{"items":null,"metadata":{}}', '{"metadata":{}}'])('a list without items: %s', (text) => {
  expect(scan(text, 3).items).toEqual([])
})

it.each(['', '{"items":[{"a":1}', 'nonsense'])('fails on what is cut off: %j', (text) => {
  expect(() => scan(text, 4)).toThrow(SyntaxError)
})
