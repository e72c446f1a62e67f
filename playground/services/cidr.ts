import { isIPv4, isIPv6 } from 'node:net'
import type { IpFamily } from '../objects/kinds.js'

/** A range of addresses; addresses are numbers here, so that allocation is counting. */
export interface Cidr {
  readonly text: string
  readonly family: IpFamily
  readonly first: bigint
  /** How many addresses it has. */
  readonly size: bigint
}

export function addressToNumber(address: string): bigint | undefined {
  if (isIPv4(address)) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  if (!isIPv6(address) || address.includes('%')) return undefined
  return ipv6Groups(address).reduce((sum, group) => sum * 65536n + BigInt(group), 0n)
}

function ipv6Groups(address: string): number[] {
  const groups = (part: string): number[] =>
    part === ''
      ? []
      : part.split(':').flatMap((group) => {
          if (!group.includes('.')) return [Number.parseInt(group, 16)]
          const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
          return [a * 256 + b, c * 256 + d]
        })
  const [head = '', tail] = address.split('::')
  const front = groups(head)
  const back = tail === undefined ? [] : groups(tail)
  return [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
}

export function numberToAddress(value: bigint, family: IpFamily): string {
  if (family === 'IPv4') return [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 255n)).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => Number((value >> BigInt((7 - index) * 16)) & 65535n))
  return compressed(groups)
}

/** RFC 5952: the longest run of two or more zero groups becomes `::`. */
function compressed(groups: readonly number[]): string {
  let best = { start: -1, length: 1 }
  let start = -1
  for (const [index, group] of [...groups, 1].entries()) {
    if (group === 0 && start < 0) start = index
    if (group !== 0 && start >= 0) {
      if (index - start > best.length) best = { start, length: index - start }
      start = -1
    }
  }
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':')
  if (best.start < 0) return hex(groups)
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`
}

export function parseCidr(text: string): Cidr | undefined {
  const [address = '', length = '', extra] = text.split('/')
  const value = addressToNumber(address)
  const family: IpFamily = isIPv4(address) ? 'IPv4' : 'IPv6'
  const bits = family === 'IPv4' ? 32 : 128
  if (value === undefined || extra !== undefined || !/^\d{1,3}$/.test(length) || Number(length) > bits) return undefined
  const size = 1n << BigInt(bits - Number(length))
  return { text, family, first: value - (value % size), size }
}

export function contains(cidr: Cidr, address: string): boolean {
  const value = addressToNumber(address)
  const family: IpFamily = isIPv4(address) ? 'IPv4' : 'IPv6'
  return value !== undefined && family === cidr.family && value >= cidr.first && value < cidr.first + cidr.size
}
