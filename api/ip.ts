import type { IPSet } from './gen/localv1/api_pb.js'

// The only reader of IP addresses and CIDRs in kpng. It is strict on purpose: programs disagree about `010.1.1.1` (8.1.1.1 to
// some, 10.1.1.1 to others), and an address that two programs read differently can bypass a filter. It accepts what Go's
// net.ParseIP accepts and returns one canonical text, so that equal addresses are equal strings.

/** Spelled as in a Service's `ipFamilies`. */
export type Family = 'IPv4' | 'IPv6'

export const families: readonly Family[] = ['IPv4', 'IPv6']

export const addressBits: Readonly<Record<Family, number>> = { IPv4: 32, IPv6: 128 }

export interface Ip {
  /** The family that the text is of. */
  readonly family: Family
  /** Canonical: IPv4 dotted, IPv6 as in RFC 5952. */
  readonly text: string
}

/** Returns undefined if the text is not an IP address. `::ffff:1.2.3.4` is the IPv4 address 1.2.3.4, as in Go. */
export function parseIp(text: string): Ip | undefined {
  if (ipv4Number(text) !== undefined) return { family: 'IPv4', text }
  const bytes = ipv6Bytes(text)
  return bytes && describe(bytes)
}

/** The family of a text that is known to be an address. */
export const familyOf = (address: string): Family => (address.includes(':') ? 'IPv6' : 'IPv4')

/** The addresses of one family in a set that may be missing. */
export const ipsOf = (set: IPSet | undefined, family: Family): readonly string[] =>
  (family === 'IPv4' ? set?.v4 : set?.v6) ?? []

/** `10.0.0.1:80`, `[fd00::1]:80` */
export const hostPort = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)

/** Whether a value can be a port number. */
export const isPort = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535

/** The 4 or 16 bytes of an address in network order. Returns undefined if the text is not an IP address. */
export function bytesOfIp(text: string): Uint8Array | undefined {
  const bytes = ipv4Bytes(text) ?? ipv6Bytes(text)
  return bytes && withoutMapping(bytes)
}

/** The canonical text of 4 or 16 bytes. */
export const ipOfBytes = (bytes: Uint8Array): string => (bytes.length === 4 ? bytes.join('.') : formatIpv6(bytes))

export interface Cidr {
  /** The family that the text is of. */
  readonly family: Family
  /** Canonical, without host bits: `10.0.0.0/8`. */
  readonly text: string
  /** The first address. */
  readonly address: string
  /** The length of the prefix. */
  readonly bits: number
}

/**
 * Returns undefined if the text is not a CIDR. Surrounding spaces are removed (the API server accepts them in
 * loadBalancerSourceRanges) and host bits are cleared, both as in kube-proxy.
 */
export function parseCidr(text: string): Cidr | undefined {
  const trimmed = text.trim()
  const slash = trimmed.indexOf('/')
  const length = trimmed.slice(slash + 1)
  if (slash < 0 || !/^\d{1,3}$/.test(length)) return undefined
  const addressText = trimmed.slice(0, slash)
  const bytes = ipv4Bytes(addressText) ?? ipv6Bytes(addressText)
  const written = Number(length)
  if (!bytes || written > bytes.length * 8) return undefined
  const { family, text: address } = describe(masked(bytes, written))
  // An IPv4 range that is written as IPv6 counts the 96 bits of `::ffff:` as well.
  const bits = written - (bytes.length * 8 - addressBits[family])
  return { family, text: `${address}/${bits}`, address, bits }
}

/** Both ends of a CIDR, as bytes. */
export function boundsOf({ address, bits }: Cidr): { first: Uint8Array; last: Uint8Array } {
  const first = bytesOfIp(address) ?? new Uint8Array()
  return { first, last: first.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, bits - index * 8)))) }
}

/** A set of CIDRs of both families that addresses can be looked up in. */
export class CidrSet {
  /** The CIDRs that are not inside another one, shortest prefix first. */
  readonly cidrs: readonly Cidr[]
  /** The first and the last address of each. */
  readonly #ipv4: { readonly first: number; readonly last: number }[] = []
  readonly #ipv6: { readonly network: Uint8Array; readonly bits: number }[] = []

  constructor(cidrs: Iterable<Cidr>) {
    const kept: Cidr[] = []
    for (const cidr of [...cidrs].sort((a, b) => a.bits - b.bits || (a.text < b.text ? -1 : 1))) {
      // Two CIDRs are disjoint, or one contains the other. The first address of the longer one decides.
      if (this.has(cidr.address)) continue
      kept.push(cidr)
      const first = ipv4Number(cidr.address)
      if (first === undefined)
        this.#ipv6.push({ network: bytesOfIp(cidr.address) ?? new Uint8Array(), bits: cidr.bits })
      else this.#ipv4.push({ first, last: first + 2 ** (32 - cidr.bits) - 1 })
    }
    this.cidrs = kept
  }

  /** Returns false if the text is not an IP address. */
  has(ip: string): boolean {
    const number = ipv4Number(ip)
    if (number !== undefined) return this.#ipv4.some(({ first, last }) => number >= first && number <= last)
    const bytes = bytesOfIp(ip)
    if (bytes?.length === 4) return this.has(ipOfBytes(bytes))
    return bytes !== undefined && this.#ipv6.some(({ network, bits }) => startsWith(bytes, network, bits))
  }
}

/** The valid CIDRs among texts; `onBad` gets the others. */
export function parseCidrs(texts: Iterable<string>, onBad: (text: string) => void = () => {}): Cidr[] {
  const cidrs: Cidr[] = []
  for (const text of texts) {
    const cidr = parseCidr(text)
    if (cidr) cidrs.push(cidr)
    else onBad(text)
  }
  return cidrs
}

/** Canonical addresses by family, sorted and without duplicates. `onBad` gets texts that are not addresses. */
export function ipSetOf(
  texts: Iterable<string>,
  onBad: (text: string) => void = () => {},
): { v4: string[]; v6: string[] } {
  const found = { IPv4: new Set<string>(), IPv6: new Set<string>() }
  for (const text of texts) {
    const ip = parseIp(text)
    if (ip) found[ip.family].add(ip.text)
    else onBad(text)
  }
  return { v4: [...found.IPv4].sort(), v6: [...found.IPv6].sort() }
}

export type UnsafeKind = 'loopback' | 'link-local' | 'unspecified' | 'multicast'

/**
 * Why a proxy must not use an address as endpoint or as Service address; undefined if the address is safe. The API server refuses such
 * endpoints too: a proxy connects as the node, so a user who may write EndpointSlices could reach the node's local ports or the
 * cloud's metadata service through it.
 */
export function unsafeKindOf(ip: string): UnsafeKind | undefined {
  const number = ipv4Number(ip)
  if (number !== undefined) return unsafeIpv4(number)
  const bytes = bytesOfIp(ip)
  if (bytes?.length === 4) return unsafeKindOf(ipOfBytes(bytes))
  return bytes && unsafeIpv6(bytes)
}

function unsafeIpv4(number: number): UnsafeKind | undefined {
  const first = number >>> 24
  if (first === 0) return 'unspecified'
  if (first === 127) return 'loopback'
  if (number >>> 16 === 0xa9fe) return 'link-local'
  return (first >= 224 && first < 240) || number === 0xffff_ffff ? 'multicast' : undefined
}

function unsafeIpv6(bytes: Uint8Array): UnsafeKind | undefined {
  const [first = 0, second = 0] = bytes
  if (first === 0xff) return 'multicast'
  if (first === 0xfe && second >> 6 === 0b10) return 'link-local'
  if (bytes.subarray(0, 15).some((byte) => byte !== 0)) return undefined
  return bytes[15] === 0 ? 'unspecified' : bytes[15] === 1 ? 'loopback' : undefined
}

export const isLoopback = (ip: string): boolean => unsafeKindOf(ip) === 'loopback'

function startsWith(bytes: Uint8Array, network: Uint8Array, bits: number): boolean {
  if (bytes.length !== network.length) return false
  const whole = bits >> 3
  for (let index = 0; index < whole; index++) if (bytes[index] !== network[index]) return false
  const mask = (0xff00 >> (bits & 7)) & 0xff
  return ((bytes[whole] ?? 0) & mask) === ((network[whole] ?? 0) & mask)
}

const masked = (bytes: Uint8Array, bits: number): Uint8Array =>
  bytes.map((byte, index) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - index * 8))))

let lastText = ''
let lastNumber: number | undefined

/**
 * An IPv4 address as a number; undefined if the text is not one. A large view has hundreds of thousands of them, and each is asked about
 * several times in a row: is it an address, is it safe, is it in a range? So the last answer is remembered.
 */
export function ipv4Number(text: string): number | undefined {
  if (text !== lastText) {
    lastNumber = readIpv4(text)
    lastText = text
  }
  return lastNumber
}

/** In one pass and without allocations. */
function readIpv4(text: string): number | undefined {
  if (text.length < 7 || text.length > 15) return undefined
  let value = 0
  let dots = 0
  let part = -1
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48
    if (digit >= 0 && digit <= 9) {
      // No leading zeros: some programs read them as octal.
      if (part === 0) return undefined
      part = part < 0 ? digit : part * 10 + digit
    } else {
      if (digit !== dot || part < 0 || part > 255 || dots === 3) return undefined
      value = (value << 8) | part
      dots++
      part = -1
    }
  }
  if (dots !== 3 || part < 0 || part > 255) return undefined
  return ((value << 8) | part) >>> 0
}

/** Its character code, counted from the digit 0. */
const dot = -2

function ipv4Bytes(text: string): Uint8Array | undefined {
  const value = ipv4Number(text)
  return value === undefined ? undefined : Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value)
}

/**
 * 16 bytes, also for an IPv4 address that is written as `::ffff:a.b.c.d`. A zone id (`%eth0`) is refused, because it is meaningful on one
 * machine only.
 */
function ipv6Bytes(text: string): Uint8Array | undefined {
  const [head = '', tail, ...more] = text.split('::')
  const before = groupsIn(head, tail === undefined)
  const after = groupsIn(tail ?? '', true)
  if (!before || !after || more.length > 0) return undefined
  const missing = 8 - before.length - after.length
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...before, ...new Array<number>(missing).fill(0), ...after]
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]))
}

const hexGroup = /^[\da-f]{1,4}$/i

/**
 * Groups of 16 bits. Returns undefined if the text consists of something else.
 * @param isEnd the last 32 bits of an address may be written as IPv4
 */
function groupsIn(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const ipv4 = isEnd ? ipv4Number(parts.at(-1) ?? '') : undefined
  if (ipv4 !== undefined) parts.pop()
  if (!parts.every((part) => hexGroup.test(part))) return undefined
  const groups = parts.map((part) => Number.parseInt(part, 16))
  return ipv4 === undefined ? groups : [...groups, ipv4 >>> 16, ipv4 & 0xffff]
}

/** The 4 bytes of an IPv4 address that is written as IPv6; other addresses as they are. */
function withoutMapping(bytes: Uint8Array): Uint8Array {
  const isMapped =
    bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every((byte) => byte === 0)
  return isMapped ? bytes.subarray(12) : bytes
}

function describe(bytes: Uint8Array): Ip {
  const own = withoutMapping(bytes)
  return { family: own.length === 4 ? 'IPv4' : 'IPv6', text: ipOfBytes(own) }
}

/** RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups shortened. */
function formatIpv6(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0))
  let start = -1
  let length = 1
  for (let from = 0; from < 8; from++) {
    let to = from
    while (to < 8 && groups[to] === 0) to++
    if (to - from > length) {
      start = from
      length = to - from
    }
    if (to > from) from = to
  }
  const hex = groups.map((group) => group.toString(16))
  if (start < 0) return hex.join(':')
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
}
