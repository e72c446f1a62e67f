import { closeSync } from 'node:fs'
import { BpfError, type BpfSyscalls } from './syscalls.js'

/** linux/bpf.h */
export const mapTypes = { hash: 1, array: 2, lruHash: 9, socketStorage: 24 } as const

const BPF_F_NO_PREALLOC = 1
const BPF_F_MMAPABLE = 1 << 10

/** What a map looks like. Two maps of one shape are interchangeable. */
export interface MapShape {
  readonly type: keyof typeof mapTypes
  readonly keyBytes: number
  readonly valueBytes: number
  /** 0 for socket storage, which has no limit. */
  readonly maxEntries: number
}

const flagsOf = ({ type }: MapShape): number =>
  ({ hash: BPF_F_NO_PREALLOC, array: BPF_F_MMAPABLE, lruHash: 0, socketStorage: BPF_F_NO_PREALLOC })[type]

/** An open map. */
export class BpfMap {
  readonly name: string
  readonly shape: MapShape
  readonly fd: number
  readonly #sys: BpfSyscalls

  constructor(sys: BpfSyscalls, fd: number, name: string, shape: MapShape) {
    this.#sys = sys
    this.fd = fd
    this.name = name
    this.shape = shape
  }

  /** @param btf for socket storage: the descriptor of `socketStorageTypes` */
  static create(sys: BpfSyscalls, name: string, shape: MapShape, btf?: number): BpfMap {
    const fields = {
      map_type: mapTypes[shape.type],
      key_size: shape.keyBytes,
      value_size: shape.valueBytes,
      max_entries: shape.maxEntries,
      map_flags: flagsOf(shape),
      map_name: `kpng_${name}`,
      ...(btf === undefined ? {} : { btf_fd: btf, btf_key_type_id: keyTypeId, btf_value_type_id: valueTypeId }),
    }
    return new BpfMap(sys, sys.bpf('BPF_MAP_CREATE', fields, `make the map ${name}`), name, shape)
  }

  /** Whether the open map has the shape that it is taken for. */
  hasItsShape(): boolean {
    const info = Buffer.alloc(80)
    const fields = { bpf_fd: this.fd, info_len: info.length, info }
    this.#sys.bpf('BPF_OBJ_GET_INFO_BY_FD', fields, `describe the map ${this.name}`)
    const [type, , keyBytes, valueBytes, maxEntries, flags] = new Uint32Array(info.buffer, info.byteOffset, 6)
    const { shape } = this
    return (
      type === mapTypes[shape.type] &&
      keyBytes === shape.keyBytes &&
      valueBytes === shape.valueBytes &&
      maxEntries === shape.maxEntries &&
      flags === flagsOf(shape)
    )
  }

  /** The memory of an array map: what is stored there is seen by programs at once. */
  memory(): ArrayBuffer {
    return this.#sys.mapMemory(this.fd, this.shape.maxEntries * Math.ceil(this.shape.valueBytes / 8) * 8)
  }

  lookup(key: Uint8Array): Buffer | undefined {
    const value = Buffer.alloc(this.shape.valueBytes)
    return this.#find('BPF_MAP_LOOKUP_ELEM', { key, value }, 'read') ? value : undefined
  }

  set(key: Uint8Array, value: Uint8Array): void {
    this.#sys.bpf('BPF_MAP_UPDATE_ELEM', { map_fd: this.fd, key, value }, `write to the map ${this.name}`)
  }

  /** Returns whether the key was there. */
  delete(key: Uint8Array): boolean {
    return this.#find('BPF_MAP_DELETE_ELEM', { key }, 'delete from')
  }

  /**
   * Writes many entries with one call. Returns how many the kernel took: fewer than given if the map is full.
   * @param keys one after the other, as are the values
   */
  setMany(keys: Uint8Array, values: Uint8Array): number {
    const count = keys.length / this.shape.keyBytes
    if (count === 0) return 0
    try {
      return this.#sys.bpf(
        'BPF_MAP_UPDATE_BATCH',
        { keys, values, count, map_fd: this.fd },
        `write to the map ${this.name}`,
      )
    } catch (error) {
      if (error instanceof BpfError && isFull(error)) return error.count
      throw error
    }
  }

  /**
   * Every key and value of a hash map.
   * @param chunk how many are read at once. The kernel gives whole buckets of its table: if one is larger, more are read at once.
   */
  *entries(chunk = 4096): Generator<readonly [key: Buffer, value: Buffer]> {
    const { keyBytes, valueBytes } = this.shape
    // The kernel says where to go on, in as many bytes as a key has.
    let [from, to] = [Buffer.alloc(Math.max(keyBytes, 8)), Buffer.alloc(Math.max(keyBytes, 8))]
    let size = chunk
    let isFirst = true
    let isLast = false
    while (!isLast) {
      const keys = Buffer.alloc(keyBytes * size)
      const values = Buffer.alloc(valueBytes * size)
      const place = isFirst ? { out_batch: to } : { in_batch: from, out_batch: to }
      const fields = { ...place, keys, values, count: size, map_fd: this.fd }
      let count: number
      try {
        count = this.#sys.bpf('BPF_MAP_LOOKUP_BATCH', fields, `read the map ${this.name}`)
      } catch (error) {
        if (!(error instanceof BpfError)) throw error
        if (error.errno === 'ENOSPC') {
          size *= 2
          continue
        }
        // This is how the kernel says that it was the last part.
        if (error.errno !== 'ENOENT') throw error
        isLast = true
        count = error.count
      }
      for (let at = 0; at < count; at++) {
        yield [
          keys.subarray(at * keyBytes, (at + 1) * keyBytes),
          values.subarray(at * valueBytes, (at + 1) * valueBytes),
        ]
      }
      ;[from, to] = [to, from]
      isFirst = false
    }
  }

  close(): void {
    closeSync(this.fd)
  }

  #find(
    command: 'BPF_MAP_LOOKUP_ELEM' | 'BPF_MAP_DELETE_ELEM',
    fields: { key: Uint8Array; value?: Uint8Array },
    verb: string,
  ): boolean {
    try {
      this.#sys.bpf(command, { map_fd: this.fd, ...fields }, `${verb} the map ${this.name}`)
      return true
    } catch (error) {
      if (error instanceof BpfError && error.errno === 'ENOENT') return false
      throw error
    }
  }
}

/** Whether a map has no room for another entry. */
const isFull = ({ errno }: BpfError): boolean => ['E2BIG', 'ENOSPC', 'ENOMEM'].includes(errno)

const keyTypeId = 1
const valueTypeId = 4

/**
 * The types of a map of socket storage, which the kernel requires: a 32-bit integer as key and a struct of `valueBytes` bytes as value.
 * Returns a descriptor; close it when the map is made.
 */
export function socketStorageTypes(sys: BpfSyscalls, valueBytes: number): number {
  const blob = btfBlob(valueBytes)
  return sys.bpf('BPF_BTF_LOAD', { btf: blob, btf_size: blob.length }, 'take the types of a map')
}

const BTF_INT = 1
const BTF_ARRAY = 3
const BTF_STRUCT = 4
const headerBytes = 24

/** linux/btf.h: a header, the types, the names. */
function btfBlob(valueBytes: number): Buffer {
  const names = '\0u32\0u8\0value\0bytes\0'
  const nameOf = (name: string) => names.indexOf(`\0${name}\0`) + 1
  const kind = (number: number, members = 0) => (number << 24) | members
  const types = [
    ...[nameOf('u32'), kind(BTF_INT), 4, 32], // type 1
    ...[nameOf('u8'), kind(BTF_INT), 1, 8], // type 2
    ...[0, kind(BTF_ARRAY), 0, 2, 1, valueBytes], // type 3: an array of type 2, indexed by type 1
    ...[nameOf('value'), kind(BTF_STRUCT, 1), valueBytes, nameOf('bytes'), 3, 0], // type 4: has one member of type 3
  ]
  const blob = Buffer.alloc(headerBytes + types.length * 4 + names.length)
  blob.writeUInt16LE(0xeb9f, 0)
  blob.writeUInt8(1, 2)
  blob.writeUInt32LE(headerBytes, 4)
  blob.writeUInt32LE(types.length * 4, 12)
  blob.writeUInt32LE(types.length * 4, 16)
  blob.writeUInt32LE(names.length, 20)
  for (const [index, word] of types.entries()) blob.writeUInt32LE(word >>> 0, headerBytes + index * 4)
  blob.write(names, headerBytes + types.length * 4, 'latin1')
  return blob
}
