import { isIPv6 } from 'node:net'

// Addresses as the kernel holds them: the bytes, kept in a string of one character a byte. Such strings compare, sort and
// serve as map keys, and two spellings of one IPv6 address are one string.

/** nftables' names of the address families; also the family of the table. */
export type Family = 'ip' | 'ip6'

export const families: readonly Family[] = ['ip', 'ip6']

export interface Address {
  readonly family: Family
  /** 4 or 16 bytes. */
  readonly bytes: string
}

/** An inclusive range of addresses of one family. */
export interface AddressRange {
  readonly family: Family
  readonly first: string
  readonly last: string
}

export const familyOfBytes = (bytes: string): Family => (bytes.length === 4 ? 'ip' : 'ip6')

/** Reads an address strictly: no octal, no zone, no spaces. Undefined when it is none. */
export function parseAddress(text: string): Address | undefined {
  const ipv4 = ipv4Bytes(text)
  if (ipv4 !== undefined) return { family: 'ip', bytes: ipv4 }
  if (isIPv6(text) && !text.includes('%')) return { family: 'ip6', bytes: ipv6Bytes(text) }
  return undefined
}

/** By hand and in one pass, since a large view has hundreds of thousands of them. */
function ipv4Bytes(text: string): string | undefined {
  if (text.length < 7 || text.length > 15) return undefined
  const parts: number[] = []
  let part = -1
  for (let index = 0; index <= text.length; index++) {
    const digit = text.charCodeAt(index) - 48
    if (digit >= 0 && digit <= 9) {
      // No leading zeros: some programs read them as octal.
      if (part === 0) return undefined
      part = part < 0 ? digit : part * 10 + digit
    } else {
      if (part < 0 || part > 255 || (index < text.length && text[index] !== '.')) return undefined
      parts.push(part)
      part = -1
    }
  }
  const [a, b, c, d] = parts as [number, number, number, number]
  return parts.length === 4 ? String.fromCharCode(a, b, c, d) : undefined
}

function ipv6Bytes(text: string): string {
  const [head = '', tail] = text.split('::')
  const left = groups(head)
  const right = tail === undefined ? '' : groups(tail)
  return left + '\0'.repeat(16 - left.length - right.length) + right
}

function groups(text: string): string {
  let bytes = ''
  for (const group of text === '' ? [] : text.split(':')) {
    if (group.includes('.')) bytes += ipv4Bytes(group) ?? ''
    else {
      const value = Number.parseInt(group, 16)
      bytes += String.fromCharCode(value >> 8, value & 0xff)
    }
  }
  return bytes
}

/** Reads `address/length`; spaces around it are forgiven, since load-balancer source ranges come with them. */
export function parseCidr(text: string): AddressRange | undefined {
  const [addressText = '', lengthText, ...rest] = text.trim().split('/')
  const address = parseAddress(addressText)
  if (!address || lengthText === undefined || rest.length > 0 || !/^\d{1,3}$/.test(lengthText)) return undefined
  const length = Number(lengthText)
  const { family, bytes } = address
  if (length > bytes.length * 8) return undefined
  let first = ''
  let last = ''
  for (let index = 0; index < bytes.length; index++) {
    const hostBits = Math.min(8, Math.max(0, (index + 1) * 8 - length))
    const hostMask = (1 << hostBits) - 1
    const byte = bytes.charCodeAt(index)
    first += String.fromCharCode(byte & ~hostMask & 0xff)
    last += String.fromCharCode(byte | hostMask)
  }
  return { family, first, last }
}

export function formatAddress(bytes: string): string {
  if (bytes.length === 4) return [...bytes].map((byte) => byte.charCodeAt(0)).join('.')
  const words: string[] = []
  for (let index = 0; index < 16; index += 2) {
    words.push(((bytes.charCodeAt(index) << 8) | bytes.charCodeAt(index + 1)).toString(16))
  }
  // RFC 5952: the longest run of two or more zero words is written as "::".
  const runs = words.join(':').match(/(?:^|(?<=:))0(?::0)+(?=:|$)/g) ?? []
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), '')
  if (longest === '') return words.join(':')
  const text = words.join(':')
  const at = text.search(new RegExp(`(?:^|(?<=:))${longest}(?=:|$)`))
  return `${text.slice(0, at).replace(/:$/, '')}::${text.slice(at + longest.length).replace(/^:/, '')}`
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

export const everyAddress = (family: Family): AddressRange => {
  const length = family === 'ip' ? 4 : 16
  return { family, first: '\0'.repeat(length), last: '\xff'.repeat(length) }
}

export const contains = (range: AddressRange, bytes: string): boolean =>
  range.first.length === bytes.length && range.first <= bytes && bytes <= range.last
