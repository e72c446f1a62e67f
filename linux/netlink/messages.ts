import { endianness } from 'node:os'
import { NLA_TYPE_MASK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSG_ERROR } from './constants.js'

// Netlink headers and attribute headers are in the byte order of the machine. Netfilter's own values are in network byte
// order, which Buffer's BE methods read and write.

export interface ByteOrder {
  readU16(bytes: Buffer, at: number): number
  readU32(bytes: Buffer, at: number): number
  readI32(bytes: Buffer, at: number): number
  writeU16(bytes: Buffer, value: number, at: number): void
  writeU32(bytes: Buffer, value: number, at: number): void
}

// Writes byte by byte: most of a message are numbers, and the methods of Buffer check the arguments of each.
const littleEndian: ByteOrder = {
  readU16: (bytes, at) => bytes.readUInt16LE(at),
  readU32: (bytes, at) => bytes.readUInt32LE(at),
  readI32: (bytes, at) => bytes.readInt32LE(at),
  writeU16(bytes, value, at) {
    bytes[at] = value
    bytes[at + 1] = value >>> 8
  },
  writeU32(bytes, value, at) {
    bytes[at] = value
    bytes[at + 1] = value >>> 8
    bytes[at + 2] = value >>> 16
    bytes[at + 3] = value >>> 24
  },
}

const bigEndian: ByteOrder = {
  readU16: (bytes, at) => bytes.readUInt16BE(at),
  readU32: (bytes, at) => bytes.readUInt32BE(at),
  readI32: (bytes, at) => bytes.readInt32BE(at),
  writeU16(bytes, value, at) {
    bytes[at] = value >>> 8
    bytes[at + 1] = value
  },
  writeU32(bytes, value, at) {
    bytes[at] = value >>> 24
    bytes[at + 1] = value >>> 16
    bytes[at + 2] = value >>> 8
    bytes[at + 3] = value
  },
}

/** The order of netfilter's own values. */
export const networkOrder = bigEndian

/** The byte order of this machine. */
export const hostOrder: ByteOrder = endianness() === 'LE' ? littleEndian : bigEndian

const { readU16, readU32, readI32 } = hostOrder

// Reading what the kernel answers.

/** Bytes of the header that every netlink message has. */
export const netlinkHeaderLength = 16

/** Bytes before the attributes of a netfilter message: the netlink header and netfilter's own. */
export const netfilterHeaderLength = netlinkHeaderLength + 4

export const align = (length: number): number => (length + 3) & ~3

export interface Message {
  readonly type: number
  readonly flags: number
  readonly sequence: number
  readonly port: number
  /** The whole message. */
  readonly bytes: Buffer
}

/** An attribute: where its value is. */
export interface Attribute {
  readonly type: number
  readonly value: Buffer
}

export function* messagesIn(bytes: Buffer): Generator<Message> {
  let at = 0
  while (at + netlinkHeaderLength <= bytes.length) {
    const length = readU32(bytes, at)
    if (length < netlinkHeaderLength || at + length > bytes.length) return
    const message = bytes.subarray(at, at + length)
    yield {
      type: readU16(message, 4),
      flags: readU16(message, 6),
      sequence: readU32(message, 8),
      port: readU32(message, 12),
      bytes: message,
    }
    at += align(length)
  }
}

export function* attributesIn(bytes: Buffer, start = 0): Generator<Attribute> {
  let at = start
  while (at + 4 <= bytes.length) {
    const length = readU16(bytes, at)
    if (length < 4 || at + length > bytes.length) return
    yield { type: readU16(bytes, at + 2) & NLA_TYPE_MASK, value: bytes.subarray(at + 4, at + length) }
    at += align(length)
  }
}

/** Calls back with the position of each attribute's value, without the objects of `attributesIn`: for lists of 100,000 entries. */
export function forEachAttribute(
  bytes: Buffer,
  start: number,
  end: number,
  visit: (type: number, from: number, to: number) => void,
): void {
  for (let at = start; at + 4 <= end; ) {
    const length = readU16(bytes, at)
    if (length < 4 || at + length > end) return
    visit(readU16(bytes, at + 2) & NLA_TYPE_MASK, at + 4, at + length)
    at += align(length)
  }
}

/** @param headerLength bytes before the attributes, which depend on the protocol */
export const attributesOf = (message: Message, headerLength = netfilterHeaderLength): Generator<Attribute> =>
  attributesIn(message.bytes, headerLength)

export function findAttribute(attributes: Iterable<Attribute>, type: number): Buffer | undefined {
  for (const attribute of attributes) if (attribute.type === type) return attribute.value
  return undefined
}

export const textOf = (value: Buffer): string => value.toString('latin1').replace(/\0+$/, '')

export interface Acknowledgement {
  readonly sequence: number
  /** 0: success. */
  readonly errno: number
  /** The kernel's message in addition to the number; often empty. */
  readonly text: string
}

const NLMSGERR_ATTR_MSG = 1

/** How a request ended, if the message says so: an acknowledgement, an error, or the end of a dump. */
export function acknowledgementIn({ type, flags, sequence, bytes }: Message): Acknowledgement | undefined {
  const isDone = type === NLMSG_DONE
  if ((!isDone && type !== NLMSG_ERROR) || bytes.length < netlinkHeaderLength + 4) return undefined
  const errno = -readI32(bytes, netlinkHeaderLength)
  if (!(flags & NLM_F_ACK_TLVS)) return { sequence, errno, text: '' }
  const text = findAttribute(attributesIn(bytes, extrasAt(bytes, isDone, flags)), NLMSGERR_ATTR_MSG)
  return { sequence, errno, text: text ? textOf(text) : '' }
}

/** An error repeats the request, or only its header, before the details. The end of a dump does not. */
function extrasAt(bytes: Buffer, isDone: boolean, flags: number): number {
  const afterErrno = netlinkHeaderLength + 4
  if (isDone) return afterErrno
  if (flags & NLM_F_CAPPED || bytes.length < afterErrno + 4) return afterErrno + netlinkHeaderLength
  return afterErrno + align(Math.min(readU32(bytes, afterErrno), bytes.length))
}
