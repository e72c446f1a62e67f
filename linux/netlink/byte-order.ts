import { endianness } from 'node:os'

// Netlink headers and attribute headers are in the byte order of the machine. Netfilter's own values are in network byte
// order, which Buffer's BE methods read and write.

export interface ByteOrder {
  readU16(bytes: Buffer, at: number): number
  readU32(bytes: Buffer, at: number): number
  readI32(bytes: Buffer, at: number): number
  writeU16(bytes: Buffer, value: number, at: number): void
  writeU32(bytes: Buffer, value: number, at: number): void
}

const littleEndian: ByteOrder = {
  readU16: (bytes, at) => bytes.readUInt16LE(at),
  readU32: (bytes, at) => bytes.readUInt32LE(at),
  readI32: (bytes, at) => bytes.readInt32LE(at),
  writeU16: (bytes, value, at) => void bytes.writeUInt16LE(value, at),
  writeU32: (bytes, value, at) => void bytes.writeUInt32LE(value, at),
}

const bigEndian: ByteOrder = {
  readU16: (bytes, at) => bytes.readUInt16BE(at),
  readU32: (bytes, at) => bytes.readUInt32BE(at),
  readI32: (bytes, at) => bytes.readInt32BE(at),
  writeU16: (bytes, value, at) => void bytes.writeUInt16BE(value, at),
  writeU32: (bytes, value, at) => void bytes.writeUInt32BE(value, at),
}

/** The byte order of this machine. */
export const hostOrder: ByteOrder = endianness() === 'LE' ? littleEndian : bigEndian
