import { addressBits, boundsOf, bytesOfIp, type Family, ipOfBytes, parseIp, parseCidr as readCidr } from '@kpng/api'

/** A range of addresses. They are numbers here, because allocating an address is counting. */
export interface Cidr {
  /** Canonical. */
  readonly text: string
  readonly family: Family
  readonly first: bigint
  /** How many addresses it has. */
  readonly size: bigint
}

const numberOf = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)

/** Undefined if the text is not an IP address. */
function addressToNumber(address: string): bigint | undefined {
  const bytes = bytesOfIp(address)
  return bytes && numberOf(bytes)
}

export const numberToAddress = (value: bigint, family: Family): string =>
  ipOfBytes(Buffer.from(value.toString(16).padStart(addressBits[family] / 4, '0'), 'hex'))

/** Undefined if the text is not a CIDR. */
export function parseCidr(text: string): Cidr | undefined {
  const cidr = readCidr(text)
  if (!cidr) return undefined
  const { first, last } = boundsOf(cidr)
  return { text: cidr.text, family: cidr.family, first: numberOf(first), size: numberOf(last) - numberOf(first) + 1n }
}

export function contains(cidr: Cidr, address: string): boolean {
  const value = addressToNumber(address)
  const isSameFamily = parseIp(address)?.family === cidr.family
  return value !== undefined && isSameFamily && value >= cidr.first && value < cidr.first + cidr.size
}
