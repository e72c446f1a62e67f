import { hostNumber, metaKey } from './expression.js'

// What nft stores with a set so that it can list it as it was written. The kernel keeps these bytes and does not read them. Without them,
// `nft list ruleset` could not print the endpoints: a slot is a number whose length nft would not know.
//
// They are made of pairs: a number, the length of the value, the value. The numbers are those of nft's sources.

const pair = (number: number, value: string): string => String.fromCharCode(number, value.length) + value

const numberPair = (number: number, value: number): string => pair(number, hostNumber(value))

const expression = (kind: number, content: string): string => numberPair(0, kind) + pair(1, content)

const concatenation = (parts: readonly string[]): string =>
  expression(13, parts.map((part, index) => pair(index, part)).join(''))

const payloads = { th: [11, 2], ip: [12, 12], ip6: [13, 9] } as const

/** `th dport`, `ip daddr`, `ip6 daddr` */
export function typeofPayload(of: keyof typeof payloads): string {
  const [protocol, field] = payloads[of]
  return expression(7, numberPair(0, protocol) + numberPair(1, field))
}

/** `meta l4proto`, `meta mark` */
export const typeofMeta = (key: keyof typeof metaKey): string => expression(9, numberPair(0, metaKey[key]))

/** `numgen random mod 2` */
export const typeofNumgen = expression(23, numberPair(0, 1) + numberPair(1, 2) + numberPair(2, 0))

const KEY_BYTE_ORDER = 0
const DATA_BYTE_ORDER = 1
const KEY_TYPEOF = 3
const DATA_TYPEOF = 4
const DATA_INTERVAL = 6

/** The user data of a set of packet marks. */
export const markUserData = numberPair(KEY_BYTE_ORDER, 1)

interface Typed {
  readonly typeof: string
  readonly order: number
}

/** A concatenation has no byte order. */
const orderOf = (fields: readonly Typed[]): number => (fields.length === 1 ? (fields[0]?.order ?? 0) : 0)

const typeofAll = (fields: readonly Typed[]): string =>
  fields.length === 1 ? (fields[0]?.typeof ?? '') : concatenation(fields.map((field) => field.typeof))

/** @param data the fields of a map's data; `verdict`: it is one; undefined: it is a set */
export function setUserData(key: readonly Typed[], data: readonly Typed[] | 'verdict' | undefined): string {
  const keyOrder = numberPair(KEY_BYTE_ORDER, orderOf(key))
  // Types that have names are stored as numbers. Of a concatenation of them, nft stores only that it is one.
  const keyNames = key.length === 1 ? '' : pair(KEY_TYPEOF, concatenation([]))
  if (data === undefined) return keyOrder + keyNames
  if (data === 'verdict') return keyOrder + numberPair(DATA_BYTE_ORDER, 0) + keyNames + numberPair(DATA_INTERVAL, 0)
  return (
    keyOrder +
    numberPair(DATA_BYTE_ORDER, orderOf(data)) +
    pair(KEY_TYPEOF, typeofAll(key)) +
    pair(DATA_TYPEOF, typeofAll(data)) +
    numberPair(DATA_INTERVAL, 0)
  )
}
