import type { AddressRange, Family } from './address.js'

// Source ranges as blocks: all addresses that begin alike, in one of a few lengths. A block is an element of a hash set, which
// changes at the cost of what changes; a set of ranges over several fields is copied by the kernel whenever it changes, whole.
// The price is a lookup for each length, paid by the first packets of connections to services that have such ranges.

/** Blocks differ by so many bits in length. Ranges that are longer or shorter by less are several blocks: up to 8, or 128. */
const bitsPerStep: Readonly<Record<Family, number>> = { ip: 4, ip6: 8 }

const addressBits: Readonly<Record<Family, number>> = { ip: 32, ip6: 128 }

/** How many leading bits the addresses of a block may have in common, longest first; without 0, which is everybody. */
export const blockLengths = (family: Family): number[] => {
  const step = bitsPerStep[family]
  return Array.from({ length: addressBits[family] / step }, (_, index) => addressBits[family] - index * step)
}

/** The address with so many bits set, as bytes. */
export const maskBytes = (family: Family, bits: number): string =>
  String.fromCharCode(
    ...Array.from({ length: addressBits[family] / 8 }, (_, index) => {
      const own = Math.min(8, Math.max(0, bits - index * 8))
      return (0xff << (8 - own)) & 0xff
    }),
  )

/** Addresses whose first bits are those of this one. All other bits of it are 0. */
export interface Block {
  readonly bits: number
  readonly address: string
}

/** The blocks that a range consists of. One of 0 bits is everybody. */
export function* blocksOf({ family, first, last }: AddressRange): Generator<Block> {
  for (const digits of prefixesOf(digitsIn(family, first), digitsIn(family, last), bitsPerStep[family])) {
    yield { bits: digits.length * bitsPerStep[family], address: addressOf(family, digits) }
  }
}

/** What all numbers from one to another begin with, as few beginnings as possible. A digit is a step. */
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

function digitsIn(family: Family, address: string): number[] {
  const bytes = [...address].map((character) => character.charCodeAt(0))
  return family === 'ip6' ? bytes : bytes.flatMap((byte) => [byte >> 4, byte & 15])
}

function addressOf(family: Family, digits: readonly number[]): string {
  const length = addressBits[family] / bitsPerStep[family]
  const all = [...digits, ...Array<number>(length - digits.length).fill(0)]
  if (family === 'ip6') return String.fromCharCode(...all)
  const byteAt = (index: number) => ((all[2 * index] ?? 0) << 4) | (all[2 * index + 1] ?? 0)
  return String.fromCharCode(byteAt(0), byteAt(1), byteAt(2), byteAt(3))
}
