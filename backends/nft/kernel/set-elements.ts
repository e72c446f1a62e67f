import {
  attributesIn,
  attributesOf,
  findAttribute,
  hostOrder,
  type Message,
  type MessageBuffer,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NLA_TYPE_MASK,
  NLM_F_CREATE,
  textOf,
} from '@kpng/linux'
import { type ElementMap, nextAddress, previousAddress } from '../elements/element.js'
import type { TableFamily } from '../rules/family.js'
import { type SetPath, type SetShape, shapeOf, splitSetPath } from '../rules/names.js'
import { NFNL_SUBSYS_NFTABLES, nftMessage } from './constants.js'

// Elements in netlink messages.

const { readU16 } = hostOrder

const LIST_TABLE = 1
const LIST_SET = 2
const LIST_ELEMENTS = 3
const LIST_ELEMENT = 1
const ELEMENT_KEY = 1
const ELEMENT_DATA = 2
const ELEMENT_FLAGS = 3
const ELEMENT_TIMEOUT = 4
const ELEMENT_EXPIRATION = 5
const ELEMENT_EXPRESSION = 7
const ELEMENT_KEY_END = 10
const DATA_VALUE = 1
const DATA_VERDICT = 2
const VERDICT_CODE = 1
const VERDICT_CHAIN = 2
const GOTO = -4
const INTERVAL_END = 1
const EXPRESSION_DATA = 2
const COUNTER_PACKETS = 2

/** The length of an attribute is a 16-bit number, which limits the elements of one message. */
const elementBytesPerMessage = 60_000

export const protocolFamily = (family: TableFamily): number => (family === 'ip' ? NFPROTO_IPV4 : NFPROTO_IPV6)

export const nftType = (message: number): number => (NFNL_SUBSYS_NFTABLES << 8) | message

/** The kernel keeps ranges of one field as two elements, and ranges of a concatenation as one with two keys. */
const isPairOfElements = ({ key, interval }: SetShape): boolean => interval === true && key.length === 1

/** When an element expires, in milliseconds. */
export interface ElementTimes {
  readonly timeoutMs: bigint
  /** From now. */
  readonly expiresMs: bigint
}

/** A set in the table of this name. */
export interface SetAt {
  readonly table: string
  readonly path: SetPath
}

/** Adds the messages that put elements into a set, or remove them. */
export function writeElements(
  buffer: MessageBuffer,
  verb: 'add' | 'delete',
  { table, path }: SetAt,
  elements: ElementMap,
  times?: ReadonlyMap<string, ElementTimes>,
): void {
  const { family, name } = splitSetPath(path)
  const shape = shapeOf(name)
  const type = nftType(verb === 'add' ? nftMessage.NEWSETELEM : nftMessage.DELSETELEM)
  let list: number | undefined
  const close = () => {
    if (list === undefined) return
    buffer.endNested(list)
    buffer.end()
    list = undefined
  }
  for (const [key, data] of elements) {
    if (list === undefined) {
      buffer.beginNetfilter(type, verb === 'add' ? NLM_F_CREATE : 0, protocolFamily(family))
      buffer.text(LIST_TABLE, table)
      buffer.text(LIST_SET, name)
      list = buffer.beginNested(LIST_ELEMENTS)
    }
    writeElement(buffer, shape, key, verb === 'add' ? data : '', times?.get(key))
    if (buffer.messageLength > elementBytesPerMessage) close()
  }
  close()
}

function writeElement(buffer: MessageBuffer, shape: SetShape, key: string, data: string, times?: ElementTimes): void {
  if (isPairOfElements(shape)) {
    writePair(buffer, key)
    return
  }
  const half = key.length / 2
  const element = buffer.beginNested(LIST_ELEMENT)
  buffer.wrapped(ELEMENT_KEY, DATA_VALUE, shape.interval ? key.slice(0, half) : key)
  if (shape.interval) buffer.wrapped(ELEMENT_KEY_END, DATA_VALUE, key.slice(half))
  if (data !== '') {
    if (shape.data === 'chain') writeGoto(buffer, data)
    else buffer.wrapped(ELEMENT_DATA, DATA_VALUE, data)
  }
  if (times) {
    buffer.u64(ELEMENT_TIMEOUT, times.timeoutMs)
    buffer.u64(ELEMENT_EXPIRATION, times.expiresMs)
  }
  buffer.endNested(element)
}

/** The first address of the range, and the first address after it. */
function writePair(buffer: MessageBuffer, range: string): void {
  const half = range.length / 2
  buffer.nested(LIST_ELEMENT, () => buffer.wrapped(ELEMENT_KEY, DATA_VALUE, range.slice(0, half)))
  const after = nextAddress(range.slice(half))
  if (after === undefined) return
  buffer.nested(LIST_ELEMENT, () => {
    buffer.wrapped(ELEMENT_KEY, DATA_VALUE, after)
    buffer.u32(ELEMENT_FLAGS, INTERVAL_END)
  })
}

function writeGoto(buffer: MessageBuffer, chain: string): void {
  buffer.nested(ELEMENT_DATA, () =>
    buffer.nested(DATA_VERDICT, () => {
      buffer.u32(VERDICT_CODE, GOTO)
      buffer.text(VERDICT_CHAIN, chain)
    }),
  )
}

/**
 * Asks for the elements of a set.
 * @param key only this one; the set has no ranges then
 */
export function writeElementsRequest(buffer: MessageBuffer, { table, path }: SetAt, flags: number, key?: string): void {
  const { family, name } = splitSetPath(path)
  buffer.beginNetfilter(nftType(nftMessage.GETSETELEM), flags, protocolFamily(family))
  buffer.text(LIST_TABLE, table)
  buffer.text(LIST_SET, name)
  if (key !== undefined) {
    buffer.nested(LIST_ELEMENTS, () => buffer.nested(LIST_ELEMENT, () => buffer.wrapped(ELEMENT_KEY, DATA_VALUE, key)))
  }
  buffer.end()
}

/** Puts together the elements of one set from the messages of a dump. */
export class ElementsReader {
  readonly #shape: SetShape
  readonly #elements: ElementMap = new Map()
  /** Of sets that the kernel writes itself. */
  readonly times = new Map<string, ElementTimes>()
  /** Of sets that count. */
  readonly packets = new Map<string, number>()
  readonly #bounds: { at: string; isEnd: boolean }[] = []

  constructor(path: SetPath) {
    this.#shape = shapeOf(splitSetPath(path).name)
  }

  read(message: Message): void {
    const list = findAttribute(attributesOf(message), LIST_ELEMENTS)
    if (!list) return
    for (const { type, value } of attributesIn(list)) if (type === LIST_ELEMENT) this.#readElement(value)
  }

  /** Without the generators of messages.ts: there may be hundreds of thousands of elements. */
  #readElement(bytes: Buffer): void {
    let key = ''
    let keyEnd = ''
    let data = ''
    let isEnd = false
    let timeoutMs = 0n
    let expiresMs = 0n
    let packets: number | undefined
    for (let at = 0; at + 4 <= bytes.length; ) {
      const length = readU16(bytes, at)
      if (length < 4) break
      const type = readU16(bytes, at + 2) & NLA_TYPE_MASK
      // A value is wrapped once more: its own header is another four bytes.
      if (type === ELEMENT_KEY) key = bytes.toString('latin1', at + 8, at + 4 + readU16(bytes, at + 4))
      else if (type === ELEMENT_KEY_END) keyEnd = bytes.toString('latin1', at + 8, at + 4 + readU16(bytes, at + 4))
      else if (type === ELEMENT_FLAGS) isEnd = (bytes.readUInt32BE(at + 4) & INTERVAL_END) !== 0
      else if (type === ELEMENT_DATA) {
        if (this.#shape.data === 'chain') data = chainIn(bytes.subarray(at + 4, at + length))
        else data = bytes.toString('latin1', at + 8, at + 4 + readU16(bytes, at + 4))
      } else if (type === ELEMENT_TIMEOUT) timeoutMs = bytes.readBigUInt64BE(at + 4)
      else if (type === ELEMENT_EXPIRATION) expiresMs = bytes.readBigUInt64BE(at + 4)
      else if (type === ELEMENT_EXPRESSION) packets = packetsIn(bytes.subarray(at + 4, at + length))
      at += (length + 3) & ~3
    }
    if (this.#shape.dynamic) this.times.set(key, { timeoutMs, expiresMs })
    if (packets !== undefined) this.packets.set(key, packets)
    if (isPairOfElements(this.#shape)) this.#bounds.push({ at: key, isEnd })
    else this.#elements.set(this.#shape.interval ? key + (keyEnd || key) : key, data)
  }

  finish(): ElementMap {
    // nft writes an end without a beginning to mark that nothing is below the first range.
    this.#bounds.sort((a, b) => (a.at === b.at ? Number(b.isEnd) - Number(a.isEnd) : a.at < b.at ? -1 : 1))
    let first: string | undefined
    for (const { at, isEnd } of this.#bounds) {
      if (first !== undefined && isEnd) this.#elements.set(first + (previousAddress(at) ?? at), '')
      first = isEnd ? undefined : at
    }
    if (first !== undefined) this.#elements.set(first + '\xff'.repeat(first.length), '')
    return this.#elements
  }
}

function chainIn(bytes: Buffer): string {
  const verdict = findAttribute(attributesIn(bytes), DATA_VERDICT)
  const chain = verdict && findAttribute(attributesIn(verdict), VERDICT_CHAIN)
  return chain ? textOf(chain) : ''
}

/** The value of a counter, from the expression of an element. */
function packetsIn(expression: Buffer): number | undefined {
  const data = findAttribute(attributesIn(expression), EXPRESSION_DATA)
  const packets = data && findAttribute(attributesIn(data), COUNTER_PACKETS)
  return packets?.length === 8 ? Number(packets.readBigUInt64BE(0)) : undefined
}
