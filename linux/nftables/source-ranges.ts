import type { Cidr } from '@kpng/api'
import { type AddressRange, rangeOf } from './element.js'
import { addressBytesIn, type TableFamily } from './family.js'
import { type Key, saddr, sourceBlock } from './field.js'
import type { FieldKind, SetShape } from './set.js'
import { drop, isIn, returns, rule, type Statement } from './statement.js'

// Source ranges are stored as blocks: all addresses with the same leading bits, in one of a few lengths. A block is an element of a
// hash set, so a change costs what changed. The kernel would copy a set of ranges over several fields each time it changes, and some
// kernels refuse to look one up. The disadvantage: the first packet of a connection to a Service with source ranges needs one lookup
// per length.

/** Blocks differ in length by this many bits. A range between two lengths is several blocks: up to 8, or 128. */
const bitsPerStep: Readonly<Record<TableFamily, number>> = { ip: 4, ip6: 8 }

/** The possible lengths of blocks in bits, longest first; without 0, which would be all addresses. */
const blockLengths = (family: TableFamily): number[] => {
  const step = bitsPerStep[family]
  const bits = addressBytesIn[family] * 8
  return Array.from({ length: bits / step }, (_, index) => bits - index * step)
}

const allowedName = (prefix: string, bits: number): string => `${prefix}allowed-${bits}`

/**
 * The sets of keys, each with a block of source addresses that may connect.
 * @param prefix of their names, if a table has such sets for several kinds of keys
 */
export const allowedSets = (family: TableFamily, key: readonly FieldKind[], prefix = ''): [string, SetShape][] =>
  blockLengths(family).map((bits) => [allowedName(prefix, bits), { key: [...key, 'address'] }])

/** The rules of a chain that allowed sources return from; all others are dropped in it. */
export function sourceRules(family: TableFamily, key: Key, prefix = ''): Statement[] {
  const lengths = blockLengths(family)
  const source = (bits: number) => (bits === lengths[0] ? saddr(family) : sourceBlock(family, bits))
  return [...lengths.map((bits) => rule(isIn([...key, source(bits)], allowedName(prefix, bits)), returns)), drop]
}

/**
 * The elements of these sets for one key, as name and key. Undefined: some range has all addresses, so every source may connect and the key
 * must not be guarded.
 */
export function allowedElements(
  family: TableFamily,
  key: string,
  cidrs: readonly Cidr[],
  prefix = '',
): [name: string, key: string][] | undefined {
  const blocks = cidrs.flatMap((cidr) => [...blocksOf(family, rangeOf(cidr))])
  if (blocks.some(({ bits }) => bits === 0)) return undefined
  return blocks.map(({ bits, address }) => [allowedName(prefix, bits), key + address])
}

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
