import { expect, test } from 'vitest'
import { printable, printableLines } from './printable.js'

test.each([
  ['\u001b[2Jweb', '\\u001b[2Jweb'],
  ['\u009b31mweb', '\\u009b31mweb'],
  ['a\r\nb\tc', 'a\\u000d\\u000ab\\u0009c'],
  ['web\u202egnp.exe\u2066', 'web\\u202egnp.exe\\u2066'],
  ['we\u200bb\ufeff\u2028', 'we\\u200bb\\ufeff\\u2028'],
  ['größer 東京 🚀', 'größer 東京 🚀'],
])('%j is shown, not obeyed', (text, shown) => {
  expect(printable(text)).toBe(shown)
})

test('lines stay lines, and JSON keeps its meaning', () => {
  const value = { name: 'a\u202eb\u001b\u0085', list: ['\u007f'] }
  const json = JSON.stringify(value, undefined, 2)
  expect(printableLines(json)).not.toMatch(/[\u202e\u0085\u007f]/)
  expect(JSON.parse(printableLines(json))).toEqual(value)
  expect(printableLines('a\n\tb\r\n')).toBe('a\n\tb\\u000d\n')
})
