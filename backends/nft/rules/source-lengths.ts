import { ipOfBytes } from '@kpng/api'
import { addressBytesIn, type TableFamily } from './family.js'

// Source ranges are stored as blocks: all addresses with the same leading bits, in one of a few lengths. A block is an element of a
// hash set, so a change costs what changed. The kernel would copy a set of ranges over several fields each time it changes. The
// disadvantage: the first packet of a connection to a Service with source ranges needs one lookup per length.

/** Blocks differ in length by this many bits. A range between two lengths is several blocks: up to 8, or 128. */
export const bitsPerStep: Readonly<Record<TableFamily, number>> = { ip: 4, ip6: 8 }

/** The possible lengths of blocks in bits, longest first; without 0, which would be all addresses. */
export const blockLengths = (family: TableFamily): number[] => {
  const step = bitsPerStep[family]
  const bits = addressBytesIn[family] * 8
  return Array.from({ length: bits / step }, (_, index) => bits - index * step)
}

/** The address with this many leading bits set, as bytes. */
export const maskBytes = (family: TableFamily, bits: number): string =>
  String.fromCharCode(
    ...Array.from({ length: addressBytesIn[family] }, (_, index) => {
      const own = Math.min(8, Math.max(0, bits - index * 8))
      return (0xff << (8 - own)) & 0xff
    }),
  )

/** The same as text. */
export const maskText = (family: TableFamily, bits: number): string =>
  ipOfBytes(Buffer.from(maskBytes(family, bits), 'latin1'))
