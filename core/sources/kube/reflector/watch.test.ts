import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LineSplitter } from './watch.js'

const split = (chunks: readonly string[], maxBytes?: number) => {
  const splitter = new LineSplitter(maxBytes)
  return chunks.flatMap((chunk) => [...splitter.push(Buffer.from(chunk))].map((line) => line.toString('utf8')))
}

it('finds lines wherever the chunks are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat(20)), (texts, cuts) => {
      const lines = texts.map((text) => text.replaceAll('\n', ''))
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
      const splitter = new LineSplitter()
      const found: string[] = []
      for (let at = 0, step = 0; at < bytes.length; step++) {
        const size = 1 + (cuts[step % Math.max(cuts.length, 1)] ?? 7)
        for (const line of splitter.push(bytes.subarray(at, at + size))) found.push(line.toString('utf8'))
        at += size
      }
      expect(found).toEqual(lines.filter((line) => line !== ''))
      expect([...splitter.push(Buffer.from('\n'))]).toEqual([])
    }),
  )
})

it('keeps the rest for the next chunk', () => expect(split(['{"a"', ':1}\n{', '}\n'])).toEqual(['{"a":1}', '{}']))

it('refuses a line without end', () => {
  expect(() => split(['x'.repeat(60), 'x'.repeat(60)], 100)).toThrow('more than 100 bytes')
})
