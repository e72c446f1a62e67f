import { KpngError } from '@kpng/api'
import { MessageBuffer } from '../netlink/buffer.js'
import { ENOENT, errnoText, NLA_TYPE_MASK, NLM_F_CREATE, NLM_F_DUMP } from '../netlink/constants.js'
import { dump } from '../netlink/dump.js'
import {
  acknowledgementIn,
  attributesIn,
  attributesOf,
  findAttribute,
  hostOrder,
  type Message,
  textOf,
} from '../netlink/messages.js'
import { nftMessage } from './constants.js'
import type { ElementMap } from './element.js'
import { nextAddress, previousAddress } from './element.js'
import { familyNumber, type TableFamily } from './family.js'
import { chainOf, gotoVerdict } from './ruleset.js'
import type { SetShape } from './set.js'
import { type NftSocket, nftType } from './socket.js'

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
const DATA_VALUE = 1
const DATA_VERDICT = 2
const VERDICT_CODE = 1
const VERDICT_CHAIN = 2
const GOTO = -4
const DROP = 0
const INTERVAL_END = 1
const EXPRESSION_DATA = 2
const COUNTER_PACKETS = 2

/** The length of an attribute is a 16-bit number, which limits the elements of one message. */
const elementBytesPerMessage = 60_000

/** When an element expires, in milliseconds. */
export interface ElementTimes {
  readonly timeoutMs: bigint
  /** From now. */
  readonly expiresMs: bigint
}

/** A set of a table. */
export interface SetAt {
  readonly family: TableFamily
  readonly table: string
  readonly name: string
  readonly shape: SetShape
}

/** Adds the messages that put elements into a set, or remove them. */
export function writeElements(
  buffer: MessageBuffer,
  verb: 'add' | 'delete',
  { family, table, name, shape }: SetAt,
  elements: ElementMap,
  times?: ReadonlyMap<string, ElementTimes>,
): void {
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
      buffer.beginNetfilter(type, verb === 'add' ? NLM_F_CREATE : 0, familyNumber[family])
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
  if (shape.interval) {
    writePair(buffer, key)
    return
  }
  const element = buffer.beginNested(LIST_ELEMENT)
  buffer.wrapped(ELEMENT_KEY, DATA_VALUE, key)
  if (data !== '') {
    if (shape.data === 'verdict') writeVerdict(buffer, data)
    else buffer.wrapped(ELEMENT_DATA, DATA_VALUE, data)
  }
  if (times) {
    buffer.u64(ELEMENT_TIMEOUT, times.timeoutMs)
    buffer.u64(ELEMENT_EXPIRATION, times.expiresMs)
  }
  buffer.endNested(element)
}

/** The kernel keeps a range as two elements: its first address, and the first address after it. */
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

/** `goto CHAIN` or `drop`. */
function writeVerdict(buffer: MessageBuffer, verdict: string): void {
  const chain = chainOf(verdict)
  buffer.nested(ELEMENT_DATA, () =>
    buffer.nested(DATA_VERDICT, () => {
      buffer.u32(VERDICT_CODE, chain === undefined ? DROP : GOTO)
      if (chain !== undefined) buffer.text(VERDICT_CHAIN, chain)
    }),
  )
}

/**
 * Asks for the elements of a set.
 * @param key only this one; the set has no ranges then
 */
function writeElementsRequest(
  buffer: MessageBuffer,
  { family, table, name }: SetAt,
  flags: number,
  key?: string,
): void {
  buffer.beginNetfilter(nftType(nftMessage.GETSETELEM), flags, familyNumber[family])
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

  constructor(shape: SetShape) {
    this.#shape = shape
  }

  read(message: Message): void {
    const list = findAttribute(attributesOf(message), LIST_ELEMENTS)
    if (!list) return
    for (const { type, value } of attributesIn(list)) if (type === LIST_ELEMENT) this.#readElement(value)
  }

  /** Without the generators of messages.ts: there may be hundreds of thousands of elements. */
  #readElement(bytes: Buffer): void {
    let key = ''
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
      else if (type === ELEMENT_FLAGS) isEnd = (bytes.readUInt32BE(at + 4) & INTERVAL_END) !== 0
      else if (type === ELEMENT_DATA) {
        if (this.#shape.data === 'verdict') data = verdictIn(bytes.subarray(at + 4, at + length))
        else data = bytes.toString('latin1', at + 8, at + 4 + readU16(bytes, at + 4))
      } else if (type === ELEMENT_TIMEOUT) timeoutMs = bytes.readBigUInt64BE(at + 4)
      else if (type === ELEMENT_EXPIRATION) expiresMs = bytes.readBigUInt64BE(at + 4)
      else if (type === ELEMENT_EXPRESSION) packets = packetsIn(bytes.subarray(at + 4, at + length))
      at += (length + 3) & ~3
    }
    if (this.#shape.dynamic) this.times.set(key, { timeoutMs, expiresMs })
    if (packets !== undefined) this.packets.set(key, packets)
    if (this.#shape.interval) this.#bounds.push({ at: key, isEnd })
    else this.#elements.set(key, data)
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

/** As text. What kpng never writes is no verdict. */
function verdictIn(bytes: Buffer): string {
  const verdict = findAttribute(attributesIn(bytes), DATA_VERDICT)
  const chain = verdict && findAttribute(attributesIn(verdict), VERDICT_CHAIN)
  if (chain) return gotoVerdict(textOf(chain))
  const code = verdict && findAttribute(attributesIn(verdict), VERDICT_CODE)
  return code?.readInt32BE(0) === DROP ? 'drop' : ''
}

/** The value of a counter, from the expression of an element. */
function packetsIn(expression: Buffer): number | undefined {
  const data = findAttribute(attributesIn(expression), EXPRESSION_DATA)
  const packets = data && findAttribute(attributesIn(data), COUNTER_PACKETS)
  return packets?.length === 8 ? Number(packets.readBigUInt64BE(0)) : undefined
}

/** How often a set is read again if the ruleset changed during the dump. */
const dumpAttempts = 5

/** What is in a set, which must exist. */
export async function readSet(socket: NftSocket, at: SetAt): Promise<ElementsReader> {
  for (let attempt = 1; attempt <= dumpAttempts; attempt++) {
    const reader = await readOnce(socket, at)
    if (reader) return reader
  }
  throw new KpngError(
    'unavailable',
    `The set "${at.family} ${at.name}" changed each time it was read. kpng tries again later.`,
  )
}

/** The data of one element, '' in a set; undefined if it is not there. */
export function lookUpElement(socket: NftSocket, at: SetAt, key: string): Promise<string | undefined> {
  return socket.inTurn(async (netlink, sequence) => {
    const request = new MessageBuffer(sequence)
    writeElementsRequest(request, at, 0, key)
    await netlink.send(request.bytes)
    const reader = new ElementsReader(at.shape)
    for (const message of netlink.receive()) {
      const errno = acknowledgementIn(message)?.errno ?? 0
      if (errno === ENOENT) return undefined
      if (errno !== 0) throw cannotRead(at, errno)
      reader.read(message)
    }
    return reader.finish().get(key)
  })
}

/** Undefined if the set changed meanwhile. */
function readOnce(socket: NftSocket, at: SetAt): Promise<ElementsReader | undefined> {
  return socket.inTurn(async (netlink, sequence) => {
    const request = new MessageBuffer(sequence)
    writeElementsRequest(request, at, NLM_F_DUMP)
    const reader = new ElementsReader(at.shape)
    const isWhole = await dump(netlink, request.bytes, (message) => {
      const failure = acknowledgementIn(message)
      if (!failure) reader.read(message)
      else if (failure.errno !== 0) throw cannotRead(at, failure.errno)
    })
    // The kernel may write to such a set at any moment, so a consistent list would be luck.
    return isWhole || at.shape.dynamic ? reader : undefined
  })
}

const cannotRead = ({ family, name }: SetAt, errno: number): KpngError =>
  new KpngError('unavailable', `The set "${family} ${name}" cannot be read: ${errnoText(errno)}.`)
