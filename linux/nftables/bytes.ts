import { endianness } from 'node:os'
import { boundsOf, bytesOfIp, type Cidr, ipOfBytes, ipv4Number } from '@kpng/api'
import { type Protocol, protocolNumbers, protocols } from './family.js'

// Addresses, ports and slots in the kernel's format: byte strings with one character per byte. Such strings can be compared, sorted
// and used as map keys. What is read from the kernel can be compared without parsing, and writing one is a copy. Each field of a concatenation is padded to four bytes.

export function addressBytes(ip: string): string {
  const number = ipv4Number(ip)
  if (number === undefined) return latin1(bytesOfIp(ip) ?? [])
  return String.fromCharCode(number >>> 24, (number >>> 16) & 0xff, (number >>> 8) & 0xff, number & 0xff)
}

export const addressText = (bytes: string): string => ipOfBytes(Buffer.from(bytes, 'latin1'))

const latin1 = (bytes: Iterable<number>): string => String.fromCharCode(...bytes)

const protocolKeys: Readonly<Record<Protocol, string>> = {
  tcp: latin1([protocolNumbers.tcp, 0, 0, 0]),
  udp: latin1([protocolNumbers.udp, 0, 0, 0]),
  sctp: latin1([protocolNumbers.sctp, 0, 0, 0]),
}

export const protocolBytes = (protocol: Protocol): string => protocolKeys[protocol]

export const protocolText = (number: number): string =>
  protocols.find((name) => protocolNumbers[name] === number) ?? String(number)

export const portBytes = (port: number): string => String.fromCharCode(port >> 8, port & 0xff, 0, 0)

export const portOf = (bytes: string): number => (bytes.charCodeAt(0) << 8) | bytes.charCodeAt(1)

// `numgen` and packet marks have the byte order of the machine.
const slotOrder: readonly number[] = endianness() === 'LE' ? [0, 8, 16, 24] : [24, 16, 8, 0]

const slotsAsBytes: string[] = []

export function slotBytes(slot: number): string {
  slotsAsBytes[slot] ??= latin1(slotOrder.map((shift) => (slot >>> shift) & 0xff))
  return slotsAsBytes[slot]
}

export const slotOf = (bytes: string): number =>
  slotOrder.reduce((slot, shift, index) => slot + bytes.charCodeAt(index) * 2 ** shift, 0)

/** A packet mark, as registers have it. */
export const markBytes = (mark: number): string => latin1(slotOrder.map((shift) => (mark >>> shift) & 0xff))

export const markOf = (bytes: string): number => slotOf(bytes) >>> 0

/** An inclusive range of addresses of one family. */
export interface AddressRange {
  readonly first: string
  readonly last: string
}

export function rangeOf(cidr: Cidr): AddressRange {
  const { first, last } = boundsOf(cidr)
  return { first: latin1(first), last: latin1(last) }
}

/** The address after this one, or undefined after the last. */
export function nextAddress(bytes: string): string | undefined {
  for (let index = bytes.length - 1; index >= 0; index--) {
    const byte = bytes.charCodeAt(index)
    if (byte < 0xff)
      return bytes.slice(0, index) + String.fromCharCode(byte + 1) + '\0'.repeat(bytes.length - index - 1)
  }
  return undefined
}

/** The address before this one, or undefined before the first. */
export function previousAddress(bytes: string): string | undefined {
  for (let index = bytes.length - 1; index >= 0; index--) {
    const byte = bytes.charCodeAt(index)
    if (byte > 0) return bytes.slice(0, index) + String.fromCharCode(byte - 1) + '\xff'.repeat(bytes.length - index - 1)
  }
  return undefined
}

/** The same addresses in the fewest ranges, in order: an nftables interval set refuses ranges that overlap. */
export function mergeRanges(ranges: readonly AddressRange[]): AddressRange[] {
  const sorted = [...ranges].sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))
  const merged: AddressRange[] = []
  for (const range of sorted) {
    const previous = merged.at(-1)
    const end = previous && (nextAddress(previous.last) ?? previous.last)
    if (previous && end !== undefined && range.first <= end) {
      if (range.last > previous.last) merged[merged.length - 1] = { ...previous, last: range.last }
    } else merged.push(range)
  }
  return merged
}
