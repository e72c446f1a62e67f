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
import { type Family, nextAddress, previousAddress } from '../address.js'
import type { ElementMap } from '../element.js'
import { type SetPath, type SetShape, shapeOf, splitSetPath, tableName } from '../names.js'
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
const ELEMENT_KEY_END = 10
const DATA_VALUE = 1
const DATA_VERDICT = 2
const VERDICT_CODE = 1
const VERDICT_CHAIN = 2
const GOTO = -4
const INTERVAL_END = 1

/** The length of an attribute is a 16-bit number, so a message holds so many bytes of elements and no more. */
const elementBytesPerMessage = 60_000

export const protocolFamily = (family: Family): number => (family === 'ip' ? NFPROTO_IPV4 : NFPROTO_IPV6)

export const nftType = (message: number): number => (NFNL_SUBSYS_NFTABLES << 8) | message

/** The kernel keeps ranges of one field as two elements, and ranges of a concatenation as one with two keys. */
const isPairOfElements = ({ key, interval }: SetShape): boolean => interval === true && key.length === 1

/** Adds the messages that put elements into a set, or take them away. */
export function writeElements(
  buffer: MessageBuffer,
  verb: 'add' | 'delete',
  path: SetPath,
  elements: ElementMap,
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
      buffer.text(LIST_TABLE, tableName)
      buffer.text(LIST_SET, name)
      list = buffer.beginNested(LIST_ELEMENTS)
    }
    writeElement(buffer, shape, key, verb === 'add' ? data : '')
    if (buffer.messageLength > elementBytesPerMessage) close()
  }
  close()
}

function writeElement(buffer: MessageBuffer, shape: SetShape, key: string, data: string): void {
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
  buffer.endNested(element)
}

/** Where the range begins, and where the first address after it is. */
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

/** Asks for all elements of a set. */
export function writeElementsRequest(buffer: MessageBuffer, path: SetPath, flags: number): void {
  const { family, name } = splitSetPath(path)
  buffer.beginNetfilter(nftType(nftMessage.GETSETELEM), flags, protocolFamily(family))
  buffer.text(LIST_TABLE, tableName)
  buffer.text(LIST_SET, name)
  buffer.end()
}

/** Puts together the elements of one set from the messages of a dump. */
export class ElementsReader {
  readonly #shape: SetShape
  readonly #elements: ElementMap = new Map()
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
      }
      at += (length + 3) & ~3
    }
    if (isPairOfElements(this.#shape)) this.#bounds.push({ at: key, isEnd })
    else this.#elements.set(this.#shape.interval ? key + (keyEnd || key) : key, data)
  }

  finish(): ElementMap {
    // An end without a beginning is nft's own mark for "nothing below the first range".
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
