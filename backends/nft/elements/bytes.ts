import { endianness } from 'node:os'
import { boundsOf, bytesOfIp, type Cidr, ipOfBytes } from '@kpng/api'
import type { Protocol } from '@kpng/client'

// Addresses, ports and slots as the kernel holds them: byte strings with one character per byte. Such strings compare, sort and
// serve as map keys, what is read from the kernel compares with what is wanted without parsing, and writing one is a copy. Only
// elements/ and kernel/ know them. Each field of a concatenation is padded to four bytes.

export const addressBytes = (ip: string): string => latin1(bytesOfIp(ip) ?? [])

export const addressText = (bytes: string): string => ipOfBytes(Buffer.from(bytes, 'latin1'))

const latin1 = (bytes: Iterable<number>): string => String.fromCharCode(...bytes)

export const protocolNumbers: Readonly<Record<Protocol, number>> = { tcp: 6, udp: 17, sctp: 132 }

export const protocols: readonly Protocol[] = ['tcp', 'udp', 'sctp']

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

// `numgen` leaves its number in the byte order of the machine.
const slotOrder: readonly number[] = endianness() === 'LE' ? [0, 8, 16, 24] : [24, 16, 8, 0]

const slotsAsBytes: string[] = []

export function slotBytes(slot: number): string {
  slotsAsBytes[slot] ??= latin1(slotOrder.map((shift) => (slot >>> shift) & 0xff))
  return slotsAsBytes[slot]
}

export const slotOf = (bytes: string): number =>
  slotOrder.reduce((slot, shift, index) => slot + bytes.charCodeAt(index) * 2 ** shift, 0)

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
