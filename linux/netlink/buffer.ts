import { NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NLA_F_NESTED, NLM_F_REQUEST } from './constants.js'
import { align, hostOrder, netfilterHeaderLength, netlinkHeaderLength, networkOrder } from './messages.js'

const { readU16, writeU16, writeU32 } = hostOrder

/**
 * An attribute as data. A number has 32 bits in network byte order, a bigint has 64. A string holds bytes, one per character. A list holds
 * attributes.
 */
export type AttributeToWrite = readonly [type: number, value: number | bigint | string | readonly AttributeToWrite[]]

/** Netlink messages one after the other, in a buffer that grows. Attribute lengths are filled in when they are known. */
export class MessageBuffer {
  #bytes: Buffer
  #at = 0
  #messageAt = 0
  #sequence: number

  /** @param sequence the number of the first message */
  constructor(sequence: number, capacity = 4096) {
    this.#sequence = sequence
    this.#bytes = Buffer.allocUnsafe(capacity)
  }

  get length(): number {
    return this.#at
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  /** The number of the message that was begun last. */
  get sequence(): number {
    return this.#sequence - 1
  }

  /** Bytes of the message that was begun last, so far. */
  get messageLength(): number {
    return this.#at - this.#messageAt
  }

  /** Starts a message. The fixed header of the protocol and then the attributes follow. */
  begin(type: number, flags: number): void {
    this.#need(netlinkHeaderLength)
    this.#messageAt = this.#at
    const bytes = this.#bytes
    writeU32(bytes, 0, this.#at)
    writeU16(bytes, type, this.#at + 4)
    writeU16(bytes, flags | NLM_F_REQUEST, this.#at + 6)
    writeU32(bytes, this.#sequence++, this.#at + 8)
    writeU32(bytes, 0, this.#at + 12)
    this.#at += netlinkHeaderLength
  }

  /** The fixed header of the protocol, which comes before the attributes. */
  header(bytes: Uint8Array): void {
    this.#need(align(bytes.length))
    this.#bytes.fill(0, this.#at, this.#at + align(bytes.length))
    this.#bytes.set(bytes, this.#at)
    this.#at += align(bytes.length)
  }

  /** Starts a message to netfilter, with its fixed header. */
  beginNetfilter(type: number, flags: number, family: number, resource = 0): void {
    this.#need(netfilterHeaderLength)
    this.begin(type, flags)
    this.#bytes.writeUInt8(family, this.#at)
    this.#bytes.writeUInt8(0, this.#at + 1)
    this.#bytes.writeUInt16BE(resource, this.#at + 2)
    this.#at += netfilterHeaderLength - netlinkHeaderLength
  }

  end(): void {
    writeU32(this.#bytes, this.#at - this.#messageAt, this.#messageAt)
  }

  /** Writes the message that was ended last once more. */
  repeat(): void {
    const from = this.#messageAt
    const length = this.messageLength
    this.#need(length)
    this.#messageAt = this.#at
    this.#bytes.copyWithin(this.#at, from, from + length)
    writeU32(this.#bytes, this.#sequence++, this.#at + 8)
    this.#at += length
  }

  addFlags(flags: number): void {
    const at = this.#messageAt + 6
    writeU16(this.#bytes, readU16(this.#bytes, at) | flags, at)
  }

  /** Netfilter takes the messages between the two, all of one subsystem, as one transaction. */
  beginBatch(subsystem: number): void {
    this.beginNetfilter(NFNL_MSG_BATCH_BEGIN, 0, 0, subsystem)
    this.end()
  }

  endBatch(subsystem: number): void {
    this.beginNetfilter(NFNL_MSG_BATCH_END, 0, 0, subsystem)
    this.end()
  }

  /** A zero-terminated string. */
  text(type: number, value: string): void {
    this.raw(type, `${value}\0`)
  }

  /** Bytes, one per character. */
  raw(type: number, value: string): void {
    const length = 4 + value.length
    const padded = align(length)
    this.#need(padded)
    this.#head(type, length)
    this.#put(this.#at + 4, value, this.#at + padded)
  }

  /** An attribute that holds one attribute of bytes. Elements are made of these, so it is written without detours. */
  wrapped(type: number, innerType: number, value: string): void {
    const length = 8 + value.length
    const padded = align(length)
    this.#need(padded)
    const bytes = this.#bytes
    const at = this.#at
    writeU16(bytes, padded, at)
    writeU16(bytes, type | NLA_F_NESTED, at + 2)
    writeU16(bytes, 4 + value.length, at + 4)
    writeU16(bytes, innerType, at + 6)
    this.#put(at + 8, value, at + padded)
  }

  /** Values are short, so this is faster than the methods of Buffer. */
  #put(from: number, value: string, end: number): void {
    const bytes = this.#bytes
    let at = from
    for (let index = 0; index < value.length; index++) bytes[at++] = value.charCodeAt(index)
    while (at < end) bytes[at++] = 0
    this.#at = end
  }

  /** Netfilter's numbers are in network byte order. */
  u32(type: number, value: number): void {
    this.#need(8)
    this.#head(type, 8)
    networkOrder.writeU32(this.#bytes, value, this.#at + 4)
    this.#at += 8
  }

  /** In the byte order of the machine, as a few are. */
  hostU32(type: number, value: number): void {
    this.#need(8)
    this.#head(type, 8)
    writeU32(this.#bytes, value >>> 0, this.#at + 4)
    this.#at += 8
  }

  /** In the byte order of the machine. */
  hostU16(type: number, value: number): void {
    this.#need(8)
    this.#head(type, 6)
    writeU16(this.#bytes, value, this.#at + 4)
    writeU16(this.#bytes, 0, this.#at + 6)
    this.#at += 8
  }

  u64(type: number, value: bigint): void {
    this.#need(12)
    this.#head(type, 12)
    this.#bytes.writeBigUInt64BE(value, this.#at + 4)
    this.#at += 12
  }

  u8(type: number, value: number): void {
    this.raw(type, String.fromCharCode(value))
  }

  /** Opens an attribute that holds others; give what it returns to `endNested`. */
  beginNested(type: number): number {
    this.#need(4)
    this.#head(type | NLA_F_NESTED, 4)
    const start = this.#at
    this.#at += 4
    return start
  }

  endNested(start: number): void {
    writeU16(this.#bytes, this.#at - start, start)
  }

  nested(type: number, write: () => void): void {
    const start = this.beginNested(type)
    write()
    this.endNested(start)
  }

  attributes(attributes: readonly AttributeToWrite[]): void {
    // At the start these are thousands, and the code is not compiled yet: so without destructuring and closures.
    for (let index = 0; index < attributes.length; index++) {
      const attribute = attributes[index] as AttributeToWrite
      const type = attribute[0]
      const value = attribute[1]
      if (typeof value === 'number') this.u32(type, value)
      else if (typeof value === 'string') this.raw(type, value)
      else if (typeof value === 'bigint') this.u64(type, value)
      else {
        const start = this.beginNested(type)
        this.attributes(value)
        this.endNested(start)
      }
    }
  }

  #head(type: number, length: number): void {
    writeU16(this.#bytes, length, this.#at)
    writeU16(this.#bytes, type, this.#at + 2)
  }

  #need(length: number): void {
    if (this.#at + length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + length))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
