import {
  NFNL_MSG_BATCH_BEGIN,
  NFNL_MSG_BATCH_END,
  NFNL_SUBSYS_NFTABLES,
  NLA_F_NESTED,
  NLM_F_REQUEST,
} from './constants.js'

/** Bytes before the attributes: the netlink header and the netfilter one. */
export const headerLength = 20

const align = (length: number): number => (length + 3) & ~3

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

  /** Where the message that was begun last starts. */
  get messageLength(): number {
    return this.#at - this.#messageAt
  }

  begin(type: number, flags: number, family: number, resource = 0): void {
    this.#need(headerLength)
    this.#messageAt = this.#at
    const bytes = this.#bytes
    bytes.writeUInt32LE(0, this.#at)
    bytes.writeUInt16LE(type, this.#at + 4)
    bytes.writeUInt16LE(flags | NLM_F_REQUEST, this.#at + 6)
    bytes.writeUInt32LE(this.#sequence++, this.#at + 8)
    bytes.writeUInt32LE(0, this.#at + 12)
    bytes.writeUInt8(family, this.#at + 16)
    bytes.writeUInt8(0, this.#at + 17)
    bytes.writeUInt16BE(resource, this.#at + 18)
    this.#at += headerLength
  }

  end(): void {
    this.#bytes.writeUInt32LE(this.#at - this.#messageAt, this.#messageAt)
  }

  addFlags(flags: number): void {
    this.#bytes.writeUInt16LE(this.#bytes.readUInt16LE(this.#messageAt + 6) | flags, this.#messageAt + 6)
  }

  beginBatch(): void {
    this.begin(NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES)
    this.end()
  }

  endBatch(): void {
    this.begin(NFNL_MSG_BATCH_END, 0, 0, NFNL_SUBSYS_NFTABLES)
    this.end()
  }

  /** A zero-terminated string. */
  text(type: number, value: string): void {
    this.raw(type, `${value}\0`)
  }

  /** Bytes, one a character. */
  raw(type: number, value: string): void {
    const length = 4 + value.length
    const padded = align(length)
    this.#need(padded)
    this.#head(type, length)
    this.#bytes.write(value, this.#at + 4, 'latin1')
    this.#bytes.fill(0, this.#at + length, this.#at + padded)
    this.#at += padded
  }

  /** An attribute that holds one attribute of bytes. Elements are made of these, so it is written without detours. */
  wrapped(type: number, innerType: number, value: string): void {
    const length = 8 + value.length
    const padded = align(length)
    this.#need(padded)
    const bytes = this.#bytes
    let at = this.#at
    bytes.writeUInt16LE(align(length), at)
    bytes.writeUInt16LE(type | NLA_F_NESTED, at + 2)
    bytes.writeUInt16LE(4 + value.length, at + 4)
    bytes.writeUInt16LE(innerType, at + 6)
    at += 8
    for (let index = 0; index < value.length; index++) bytes[at++] = value.charCodeAt(index)
    this.#at += padded
    while (at < this.#at) bytes[at++] = 0
  }

  /** Netfilter's numbers are in network byte order. */
  u32(type: number, value: number): void {
    this.#need(8)
    this.#head(type, 8)
    this.#bytes.writeUInt32BE(value >>> 0, this.#at + 4)
    this.#at += 8
  }

  /** In the byte order of the machine, as a few are. */
  hostU32(type: number, value: number): void {
    const bytes = new Uint8Array(new Uint32Array([value]).buffer)
    this.raw(type, String.fromCharCode(...bytes))
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
    this.#bytes.writeUInt16LE(this.#at - start, start)
  }

  nested(type: number, write: () => void): void {
    const start = this.beginNested(type)
    write()
    this.endNested(start)
  }

  #head(type: number, length: number): void {
    this.#bytes.writeUInt16LE(length, this.#at)
    this.#bytes.writeUInt16LE(type, this.#at + 2)
  }

  #need(length: number): void {
    if (this.#at + length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + length))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
