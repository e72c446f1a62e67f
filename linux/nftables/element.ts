import { endianness } from 'node:os'
import { boundsOf, bytesOfIp, type Cidr, ipOfBytes, ipv4Number } from '@kpng/api'
import { type Protocol, protocolNumbers, protocols, type TableFamily } from './family.js'

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

/** A port that is all of an element's data. */
export const portAlone = (port: number): string => String.fromCharCode(port >> 8, port & 0xff)

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

// What is in the sets and maps of our tables, and how to get from one state to another.

/** A set in one of the tables: `ip endpoints`. */
export type SetPath = `${TableFamily} ${string}`

/** A chain in one of the tables: `ip remember-60`. */
export type ChainPath = `${TableFamily} ${string}`

/** Returns the same string object each time: it is looked up once per element, and a new string must be hashed first. */
export function setPath(family: TableFamily, name: string): SetPath {
  const known = setPaths[family].get(name)
  if (known !== undefined) return known
  const path: SetPath = `${family} ${name}`
  setPaths[family].set(name, path)
  return path
}

const setPaths: Readonly<Record<TableFamily, Map<string, SetPath>>> = { ip: new Map(), ip6: new Map() }

export function splitSetPath(path: SetPath): { family: TableFamily; name: string } {
  const space = path.indexOf(' ')
  return { family: path.slice(0, space) as TableFamily, name: path.slice(space + 1) }
}

/** Key → data, both byte strings. The data of a set's element is ''; that of a verdict map is the verdict as text. */
export type ElementMap = Map<string, string>

/** The contents of the tables, or a part of them. */
export type Elements = Map<SetPath, ElementMap>

export function put(elements: Elements, path: SetPath, key: string, data = ''): void {
  mapAt(elements, path).set(key, data)
}

/** The map at a path, made if it is missing. */
export function mapAt<Value>(maps: Map<SetPath, Map<string, Value>>, path: SetPath): Map<string, Value> {
  let map = maps.get(path)
  if (!map) {
    map = new Map()
    maps.set(path, map)
  }
  return map
}

export function countElements(elements: Elements): number {
  let count = 0
  for (const map of elements.values()) count += map.size
  return count
}

/** What one commit changes, all or nothing: first `remove` is removed, then `add` is added. */
export interface Transaction {
  readonly remove: Elements
  readonly add: Elements
}

export const emptyTransaction = (): Transaction => ({ remove: new Map(), add: new Map() })

export const isEmpty = ({ remove, add }: Transaction): boolean => remove.size === 0 && add.size === 0

/** The number of elements that it writes. */
export const operationCount = ({ remove, add }: Transaction): number => countElements(remove) + countElements(add)

/**
 * Adds to a transaction the difference between two states. The kernel cannot change the data of an element in place: the element is
 * removed and added again in one transaction, so no packet sees it missing.
 */
export function addDifference(transaction: Transaction, before: Elements, after: Elements): void {
  for (const [path, old] of before) {
    const now = after.get(path)
    for (const [key, data] of old) if (now?.get(key) !== data) put(transaction.remove, path, key, data)
  }
  for (const [path, now] of after) {
    const old = before.get(path)
    if (!old && !transaction.add.has(path)) {
      // Everything is new, as at the start. Copying hundreds of thousands of elements would waste time and memory.
      transaction.add.set(path, now)
      continue
    }
    for (const [key, data] of now) if (old?.get(key) !== data) put(transaction.add, path, key, data)
  }
}

export function difference(before: Elements, after: Elements): Transaction {
  const transaction = emptyTransaction()
  addDifference(transaction, before, after)
  return transaction
}
