import type { GracePeriods } from './grace-periods.js'

/** A hash map of the kernel; in tests, one in memory. */
export interface HashMap {
  lookup(key: Uint8Array): Uint8Array | undefined
  /** Returns how many of the entries were written: fewer than given if the map is full. */
  setMany(keys: Uint8Array, values: Uint8Array): number
  delete(key: Uint8Array): boolean
  entries(): Iterable<readonly [key: Uint8Array, value: Uint8Array]>
}

/** The bytes of a key as a string that can be compared. */
export const keyText = (key: Uint8Array): string => Buffer.from(key).toString('latin1')
export const keyBytes = (text: string): Buffer => Buffer.from(text, 'latin1')

/**
 * A hash map whose entries are never overwritten. The kernel may use the memory of a deleted entry for another key at once, while a program
 * still reads it: after a delete, a grace period must pass before the next entry is added.
 */
export class HashTable {
  readonly #map: HashMap
  readonly #graces: GracePeriods
  #deleted: Promise<void> | undefined

  constructor(map: HashMap, graces: GracePeriods) {
    this.#map = map
    this.#graces = graces
  }

  /** The value of a key, 32 bits. */
  lookup(key: string): number | undefined {
    const value = this.#map.lookup(keyBytes(key))
    return value && numberOf(value)
  }

  *entries(): Generator<readonly [key: string, value: number]> {
    for (const [key, value] of this.#map.entries()) yield [keyText(key), numberOf(value)]
  }

  delete(key: string): void {
    if (!this.#map.delete(keyBytes(key))) return
    const over = this.#graces.whenOver().then(() => {
      if (this.#deleted === over) this.#deleted = undefined
    })
    this.#deleted = over
  }

  /** Adds entries whose keys are not there. Returns those that the map has no room for. */
  async add(entries: readonly (readonly [key: string, value: number])[]): Promise<string[]> {
    if (entries.length === 0) return []
    while (this.#deleted) await this.#deleted
    const keys = Buffer.concat(entries.map(([key]) => keyBytes(key)))
    const values = Buffer.alloc(entries.length * 4)
    for (const [index, [, value]] of entries.entries()) values.writeUInt32LE(value, index * 4)
    const written = this.#map.setMany(keys, values)
    return entries.slice(written).map(([key]) => key)
  }
}

const numberOf = (value: Uint8Array): number => Buffer.from(value).readUInt32LE()
