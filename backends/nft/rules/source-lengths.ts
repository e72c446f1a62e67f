import { ipOfBytes } from '@kpng/api'
import { addressBytesIn, type TableFamily } from './family.js'

// Source ranges are kept as blocks: all addresses with the same leading bits, in one of a few lengths. A block is an element of a
// hash set, which changes at the cost of what changes; a set of ranges over several fields is copied by the kernel whenever it
// changes, whole. The price is a lookup per length, paid by the first packets of connections to Services with source ranges.

/** Blocks differ in length by this many bits. A range between two lengths is several blocks: up to 8, or 128. */
export const bitsPerStep: Readonly<Record<TableFamily, number>> = { ip: 4, ip6: 8 }

/** How many leading bits the addresses of a block can have in common, longest first; without 0, which is everybody. */
export const blockLengths = (family: TableFamily): number[] => {
  const step = bitsPerStep[family]
  const bits = addressBytesIn[family] * 8
  return Array.from({ length: bits / step }, (_, index) => bits - index * step)
}

/** The address with this many leading bits set. */
export const maskText = (family: TableFamily, bits: number): string =>
  ipOfBytes(
    Uint8Array.from({ length: addressBytesIn[family] }, (_, index) => {
      const own = Math.min(8, Math.max(0, bits - index * 8))
      return (0xff << (8 - own)) & 0xff
    }),
  )
