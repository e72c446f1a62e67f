import { isIPv4, isIPv6 } from 'node:net'

// Strict on purpose: an address that two programs read differently (010.1.1.1 is 8.1.1.1 to some, 10.1.1.1 to others) opens a
// door that nobody asked for. What is accepted is what Go's net.ParseIP accepts, and it comes out in one canonical text, so that
// equal addresses are equal strings.

export type Family = 'v4' | 'v6'

export const families: readonly Family[] = ['v4', 'v6']

export interface Ip {
  readonly family: Family
  /** IPv4 dotted; IPv6 as RFC 5952 writes it. */
  readonly text: string
}

/** An address, or undefined when the text is none. `::ffff:1.2.3.4` is the IPv4 address 1.2.3.4, as it is to Go. */
export function parseIp(text: string): Ip | undefined {
  if (isIPv4(text)) return { family: 'v4', text }
  // Zone ids mean something on one machine only.
  if (!isIPv6(text) || text.includes('%')) return undefined
  const groups = groupsOf(text)
  const mapped = mappedIpv4(groups)
  return mapped === undefined ? { family: 'v6', text: formatIpv6(groups) } : { family: 'v4', text: mapped }
}

export const familyOf = (text: string): Family | undefined => parseIp(text)?.family

/**
 * A network in canonical text, or undefined when the text is none. Spaces around it are trimmed (the API server lets them pass
 * in loadBalancerSourceRanges, checklist 45) and host bits are cleared, both as kube-proxy does.
 */
export function parseCidr(text: string): Ip | undefined {
  const trimmed = text.trim()
  const slash = trimmed.indexOf('/')
  const length = trimmed.slice(slash + 1)
  if (slash < 0 || !/^\d{1,3}$/.test(length)) return undefined
  const address = trimmed.slice(0, slash)
  const bits = Number(length)
  if (isIPv4(address)) return bits > 32 ? undefined : ipv4Cidr(groupsOf(`::${address}`), bits)
  if (!isIPv6(address) || address.includes('%') || bits > 128) return undefined
  const groups = masked(groupsOf(address), bits)
  if (bits >= 96 && mappedIpv4(groups) !== undefined) return ipv4Cidr(groups, bits - 96)
  return { family: 'v6', text: `${formatIpv6(groups)}/${bits}` }
}

/** Addresses by family, sorted and without duplicates. Those that are none are handed to `onBad` and left out. */
export function ipSetOf(
  texts: Iterable<string>,
  onBad: (text: string) => void = () => {},
): { v4: string[]; v6: string[] } {
  const found = { v4: new Set<string>(), v6: new Set<string>() }
  for (const text of texts) {
    const ip = parseIp(text)
    if (ip) found[ip.family].add(ip.text)
    else onBad(text)
  }
  return { v4: [...found.v4].sort(), v6: [...found.v6].sort() }
}

/** The eight 16-bit groups of a valid IPv6 address. */
function groupsOf(text: string): number[] {
  const [head = '', tail] = text.split('::')
  const before = groupsIn(head)
  if (tail === undefined) return before
  const after = groupsIn(tail)
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function groupsIn(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

const dotted = (groups: readonly number[]): string => {
  const [high = 0, low = 0] = groups.slice(6)
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

const mappedIpv4 = (groups: readonly number[]): string | undefined =>
  groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0) ? dotted(groups) : undefined

const masked = (groups: readonly number[], bits: number): number[] =>
  groups.map((group, index) => {
    const kept = Math.min(16, Math.max(0, bits - index * 16))
    return group & (0xffff << (16 - kept)) & 0xffff
  })

const ipv4Cidr = (groups: readonly number[], bits: number): Ip => ({
  family: 'v4',
  text: `${dotted(masked(groups, 96 + bits))}/${bits}`,
})

/** RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups shortened. */
function formatIpv6(groups: readonly number[]): string {
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
