import type { AttributeToWrite } from '../netlink/buffer.js'
import { counter, expressionAttributes } from './expression.js'
import { addressBytesIn, type TableFamily } from './family.js'
import { markUserData, setUserData, typeofMeta, typeofNumgen, typeofPayload } from './set-user-data.js'

// Sets and maps, as nft reads them and as attributes of a netlink message.

export type FieldKind = 'address' | 'protocol' | 'port' | 'slot' | 'mark'

/** What is in a set or map. */
export interface SetShape {
  readonly key: readonly FieldKind[]
  /** Maps only. */
  readonly data?: readonly FieldKind[] | 'verdict'
  /**
   * Keys are ranges of one field: their bytes are the first key, then the last one. Ranges in a concatenation are not offered: the kernel
   * copies such a set each time it changes, and 6.12.117 refuses to look one up. See `source-ranges.ts`.
   */
  readonly interval?: true
  /** Packets write it; the owner of the table only removes elements. More elements than this are not added. */
  readonly dynamic?: { readonly maxElements: number }
  /** Each element counts the packets that match it. */
  readonly counter?: true
}

interface FieldType {
  /** The type, as nft names and numbers it. Slots have no name of their own, only the type of an expression. */
  readonly name: string
  readonly number: number
  readonly bytes: number
  /** An expression of this type, as text and as nft stores it. */
  readonly expression: string
  readonly typeof: string
  /** Of a field alone, as nft stores it. A concatenation has none. */
  readonly order: number
}

const [hostOrder, networkOrder] = [1, 2]

const typesIn = (family: TableFamily): Readonly<Record<FieldKind, FieldType>> => ({
  address: {
    name: family === 'ip' ? 'ipv4_addr' : 'ipv6_addr',
    number: family === 'ip' ? 7 : 8,
    bytes: addressBytesIn[family],
    expression: `${family} daddr`,
    typeof: typeofPayload(family),
    order: networkOrder,
  },
  protocol: {
    ...{ name: 'inet_proto', number: 12, bytes: 1, expression: 'meta l4proto' },
    ...{ typeof: typeofMeta('l4proto'), order: networkOrder },
  },
  port: {
    ...{ name: 'inet_service', number: 13, bytes: 2, expression: 'th dport' },
    ...{ typeof: typeofPayload('th'), order: networkOrder },
  },
  slot: {
    ...{ name: 'integer', number: 4, bytes: 4, expression: 'numgen random mod 2' },
    ...{ typeof: typeofNumgen, order: hostOrder },
  },
  mark: {
    ...{ name: 'mark', number: 19, bytes: 4, expression: 'meta mark' },
    ...{ typeof: typeofMeta('mark'), order: hostOrder },
  },
})

const types: Readonly<Record<TableFamily, Readonly<Record<FieldKind, FieldType>>>> = {
  ip: typesIn('ip'),
  ip6: typesIn('ip6'),
}

const typesOf = (family: TableFamily, fields: readonly FieldKind[]): FieldType[] =>
  fields.map((field) => types[family][field])

/** A set or map as `nft -f` reads it. */
export function setDefinition(
  family: TableFamily,
  name: string,
  { key, data, interval, dynamic, counter }: SetShape,
): string {
  const list = (fields: readonly FieldKind[], what: 'name' | 'expression') =>
    typesOf(family, fields)
      .map((type) => type[what])
      .join(' . ')
  const type =
    typeof data === 'object'
      ? `typeof ${list(key, 'expression')} : ${list(data, 'expression')};`
      : `type ${list(key, 'name')}${data === 'verdict' ? ' : verdict' : ''};`
  const flags = interval ? ' flags interval;' : dynamic ? ` flags dynamic,timeout; size ${dynamic.maxElements};` : ''
  return `  ${data ? 'map' : 'set'} ${name} { ${type}${flags}${counter ? ' counter;' : ''} }`
}

const attribute = { flags: 3, keyType: 4, keyLength: 5, dataType: 6, dataLength: 7, description: 9 } as const
const userData = 13
const elementExpression = 17

const setFlag = { interval: 4, map: 8, timeout: 0x10, dynamic: 0x20 } as const

const verdictType = 0xffffff00
const verdictBytes = 16

/** nft has six bits for each type of a concatenation. */
const typeNumber = (fields: readonly FieldType[]): number => fields.reduce((sum, { number }) => sum * 64 + number, 0)

/** Each field of a concatenation is padded to four bytes. */
const bytesOf = (fields: readonly FieldType[]): number =>
  fields.length === 1 ? (fields[0]?.bytes ?? 0) : fields.reduce((sum, { bytes }) => sum + Math.max(bytes, 4), 0)

/** The attributes that describe a set or map, without its name. */
export function setAttributes(family: TableFamily, shape: SetShape): AttributeToWrite[] {
  const { interval, dynamic } = shape
  const key = typesOf(family, shape.key)
  const data = typeof shape.data === 'object' ? typesOf(family, shape.data) : shape.data
  const flags =
    (interval ? setFlag.interval : 0) | (data ? setFlag.map : 0) | (dynamic ? setFlag.timeout | setFlag.dynamic : 0)
  return [
    [attribute.flags, flags],
    [attribute.keyType, typeNumber(key)],
    [attribute.keyLength, bytesOf(key)],
    ...(data === 'verdict' ? typed(verdictType, verdictBytes) : data ? typed(typeNumber(data), bytesOf(data)) : []),
    ...(dynamic ? [[attribute.description, [[1, dynamic.maxElements]]] as const] : []),
    [userData, setUserData(key, data)],
    ...(shape.counter ? [[elementExpression, expressionAttributes(counter())] as const] : []),
  ]
}

const typed = (type: number, bytes: number): AttributeToWrite[] => [
  [attribute.dataType, type],
  [attribute.dataLength, bytes],
]

/** A set that never has elements: only its name matters. */
export const markerDefinition = (name: string): string => `  set ${name} { type mark; }`

const markType = 19

export const markerAttributes: readonly AttributeToWrite[] = [
  [attribute.keyType, markType],
  [attribute.keyLength, 4],
  [userData, markUserData],
]
