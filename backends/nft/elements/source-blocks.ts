import { addressBytesIn, type TableFamily } from '../rules/family.js'
import { bitsPerStep } from '../rules/source-lengths.js'
import type { AddressRange } from './element.js'

/** All addresses with the same leading bits as this one. Its other bits are 0. */
export interface Block {
  readonly bits: number
  readonly address: string
}

/** The blocks that a range consists of. A block of 0 bits contains all addresses. */
export function* blocksOf(family: TableFamily, { first, last }: AddressRange): Generator<Block> {
  for (const digits of prefixesOf(digitsIn(family, first), digitsIn(family, last), bitsPerStep[family])) {
    yield { bits: digits.length * bitsPerStep[family], address: addressOf(family, digits) }
  }
}

/** The fewest prefixes that cover all numbers from one to another. A number is a list of digits of `step` bits. */
function* prefixesOf(first: readonly number[], last: readonly number[], step: number): Generator<readonly number[]> {
  const highest = 2 ** step - 1
  const common = first.findIndex((digit, index) => digit !== last[index])
  if (common < 0) {
    yield first
    return
  }
  if (first.slice(common).every((digit) => digit === 0) && last.slice(common).every((digit) => digit === highest)) {
    yield first.slice(0, common)
    return
  }
  const [from = 0, to = 0] = [first[common], last[common]]
  const rest = first.length - common - 1
  for (let digit = from; digit <= to; digit++) {
    const begins = [...first.slice(0, common), digit]
    const lowest = digit === from ? first : [...begins, ...Array<number>(rest).fill(0)]
    yield* prefixesOf(lowest, digit === to ? last : [...begins, ...Array<number>(rest).fill(highest)], step)
  }
}

function digitsIn(family: TableFamily, address: string): number[] {
  const bytes = [...address].map((character) => character.charCodeAt(0))
  return family === 'ip6' ? bytes : bytes.flatMap((byte) => [byte >> 4, byte & 15])
}

function addressOf(family: TableFamily, digits: readonly number[]): string {
  const length = (addressBytesIn[family] * 8) / bitsPerStep[family]
  const all = [...digits, ...Array<number>(length - digits.length).fill(0)]
  if (family === 'ip6') return String.fromCharCode(...all)
  const byteAt = (index: number) => ((all[2 * index] ?? 0) << 4) | (all[2 * index + 1] ?? 0)
  return String.fromCharCode(byteAt(0), byteAt(1), byteAt(2), byteAt(3))
}
