import { endpoint, type Sizes, set, slot } from '../layout.js'
import { type HashMap, keyBytes, keyText } from '../tables/hash-table.js'
import type { TableMaps } from '../tables/memory.js'

/** A hash map in memory that takes a limited number of entries. */
export class MemoryHashMap implements HashMap {
  readonly values = new Map<string, Buffer>()
  readonly #max: number
  readonly #keySize: number

  constructor(max: number, keySize: number) {
    this.#max = max
    this.#keySize = keySize
  }

  lookup(key: Uint8Array): Buffer | undefined {
    return this.values.get(keyText(key))
  }

  setMany(keys: Uint8Array, values: Uint8Array): number {
    const count = keys.length / this.#keySize
    for (let at = 0; at < count; at++) {
      const key = keyText(keys.subarray(at * this.#keySize, (at + 1) * this.#keySize))
      if (this.values.size >= this.#max && !this.values.has(key)) return at
      this.values.set(key, Buffer.from(values.subarray(at * 4, at * 4 + 4)))
    }
    return count
  }

  delete(key: Uint8Array): boolean {
    return this.values.delete(keyText(key))
  }

  *entries(): Generator<readonly [Buffer, Buffer]> {
    for (const [key, value] of this.values) yield [keyBytes(key), value]
  }
}

/** Maps without a kernel. Grace periods end when `endGrace` is called, or at once if `graceIsManual` is false. */
export class MemoryMaps implements TableMaps {
  readonly sizes: Sizes
  readonly sets: ArrayBuffer
  readonly slots: ArrayBuffer
  readonly endpoints: ArrayBuffer
  readonly frontends: MemoryHashMap
  readonly nodeAddresses = new MemoryHashMap(1024, 16)
  graceIsManual = false
  graces = 0
  #waiting: (() => void)[] = []

  constructor(sizes: Sizes = { frontends: 64, slots: 512, endpoints: 256, clients: 16 }) {
    this.sizes = sizes
    this.sets = new ArrayBuffer(sizes.frontends * set.bytes)
    this.slots = new ArrayBuffer(sizes.slots * slot.bytes)
    this.endpoints = new ArrayBuffer(sizes.endpoints * endpoint.bytes)
    this.frontends = new MemoryHashMap(sizes.frontends, 20)
  }

  gracePeriod(): Promise<void> {
    this.graces++
    return this.graceIsManual ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve()
  }

  endGrace(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
