import { addressText } from './element.js'
import {
  bitwise,
  ctKey,
  ctOriginal,
  type Expression,
  header,
  meta,
  metaKey,
  payload,
  random as randomNumber,
} from './expression.js'
import { addressBytesIn, type Protocol, type TableFamily } from './family.js'

// What a rule can read of a packet. Each field is written twice, side by side: as nft reads it, and as expressions.

export interface Field {
  readonly text: string
  /** How many registers of four bytes it takes. */
  readonly registers: number
  readonly load: (register: number) => readonly Expression[]
}

/** Several fields one after the other. */
export type Key = readonly Field[]

export const keyText = (key: Key): string => key.map(({ text }) => text).join(' . ')

export const registersOf = (key: Key): number => key.reduce((sum, { registers }) => sum + registers, 0)

export function loadKey(key: Key, register = 0): Expression[] {
  let at = register
  return key.flatMap((field) => {
    const loaded = field.load(at)
    at += field.registers
    return loaded
  })
}

export const l4proto: Field = {
  text: 'meta l4proto',
  registers: 1,
  load: (register) => [meta(register, metaKey.l4proto)],
}

const portOffset = 2

/** The port of a protocol; `th`: of whatever protocol the packet has. */
export const dport = (protocol: Protocol | 'th' = 'th'): Field => ({
  text: `${protocol} dport`,
  registers: 1,
  load: (register) => [payload(register, header.transport, portOffset, 2)],
})

/** A number from 0 to `below` - 1. */
export const random = (below: number): Field => ({
  text: `numgen random mod ${below}`,
  registers: 1,
  load: (register) => [randomNumber(register, below)],
})

/** The port that the client used. */
export const originalPort: Field = {
  text: 'ct original proto-dst',
  registers: 1,
  load: (register) => [ctOriginal(register, ctKey.protoDst)],
}

/** Where the addresses are in the headers of IPv4 and IPv6. */
export const addressOffset = { ip: { saddr: 12, daddr: 16 }, ip6: { saddr: 8, daddr: 24 } } as const

const address = (family: TableFamily, which: 'saddr' | 'daddr'): Field => ({
  text: `${family} ${which}`,
  registers: addressBytesIn[family] / 4,
  load: (register) => [payload(register, header.network, addressOffset[family][which], addressBytesIn[family])],
})

export const saddr = (family: TableFamily): Field => address(family, 'saddr')
export const daddr = (family: TableFamily): Field => address(family, 'daddr')

/** The leading bits of the source address. */
export const sourceBlock = (family: TableFamily, bits: number): Field => {
  const mask = maskBytes(family, bits)
  return {
    text: `${family} saddr & ${addressText(mask)}`,
    registers: addressBytesIn[family] / 4,
    load: (register) => [...saddr(family).load(register), bitwise(register, mask, '\0'.repeat(mask.length))],
  }
}

/** The address with this many leading bits set. */
const maskBytes = (family: TableFamily, bits: number): string =>
  String.fromCharCode(
    ...Array.from({ length: addressBytesIn[family] }, (_, index) => {
      const own = Math.min(8, Math.max(0, bits - index * 8))
      return (0xff << (8 - own)) & 0xff
    }),
  )

const originalAddress = (family: TableFamily, which: 'saddr' | 'daddr'): Field => ({
  text: `ct original ${family} ${which}`,
  registers: addressBytesIn[family] / 4,
  load: (register) => [ctOriginal(register, ctKey[which === 'saddr' ? 'source' : 'destination'][family])],
})

/** The addresses that the client used. */
export const originalSaddr = (family: TableFamily): Field => originalAddress(family, 'saddr')
export const originalDaddr = (family: TableFamily): Field => originalAddress(family, 'daddr')

/** An address of a Service, with protocol and port. */
export const serviceKey = (family: TableFamily): Key => [daddr(family), l4proto, dport()]

export const nodePortKey: Key = [l4proto, dport()]
