// How a client and a server find out where their states differ. Each item is hashed as it goes over the wire. A digest is the sum of the
// hashes, so the order does not matter, and a removed item is subtracted. Digests protect against loss, not against forgery.

/** A hash has 53 bits, so that it is one number: 32 in the low lane, 21 in the high lane. */
const highLane = 2 ** 32

/** Bytes of a digest on the wire: two lanes, little-endian. */
export const digestBytes = 8

/** As many buckets as fit into half of the largest request (64 KiB). */
const maxBuckets = 4096

/** Whether a state can be divided into so many buckets: a power of two, up to 4,096. Check every number that comes from a wire. */
export const isBucketCount = (count: number): boolean =>
  Number.isInteger(count) && count >= 1 && count <= maxBuckets && (count & (count - 1)) === 0

/** One bucket per few items, so that a change costs little more than itself. A power of two. */
export function bucketCountFor(items: number): number {
  let count = 16
  while (count < maxBuckets && count * 16 < items) count *= 2
  return count
}

/** The hash of an item: of the OpItem message that sets it. */
export function itemHash(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let low = 0x9e3779b9
  let high = 0x85ebca6b
  for (let index = start; index < end; index++) {
    const byte = bytes[index] as number
    low = Math.imul(low ^ byte, 0x9e3779b1)
    high = Math.imul(high ^ byte, 0x5f356495)
  }
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  return (high >>> 11) * highLane + (low >>> 0)
}

/** A number from which an item's bucket follows: FNV-1a of its path in UTF-8. */
export function placeOf(path: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < path.length; index++) {
    const code = path.charCodeAt(index)
    if (code > 127) return placeOfBytes(new TextEncoder().encode(path))
    hash = Math.imul(hash ^ code, 0x01000193)
  }
  return mixed(hash)
}

function placeOfBytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return mixed(hash)
}

/** The low bits, of which the bucket is made, depend on all others. */
const mixed = (hash: number): number => (hash ^ (hash >>> 15)) >>> 0

/** The digests of some buckets; of one, if it is the digest of everything. */
export class Digest {
  readonly #lanes: Int32Array

  constructor(buckets = 1) {
    this.#lanes = new Int32Array(2 * buckets)
  }

  get buckets(): number {
    return this.#lanes.length / 2
  }

  add(hash: number, place = 0): void {
    const at = 2 * (place % this.buckets)
    // Sums of 32 bits: what is above is cut off.
    this.#lanes[at] = (this.#lanes[at] as number) + (hash | 0)
    this.#lanes[at + 1] = (this.#lanes[at + 1] as number) + Math.floor(hash / highLane)
  }

  /** Takes an item out again. */
  remove(hash: number, place = 0): void {
    const at = 2 * (place % this.buckets)
    this.#lanes[at] = (this.#lanes[at] as number) - (hash | 0)
    this.#lanes[at + 1] = (this.#lanes[at + 1] as number) - Math.floor(hash / highLane)
  }

  /** Becomes the same as another one of as many buckets. */
  set(other: Digest): void {
    this.#lanes.set(other.#lanes)
  }

  toBytes(): Uint8Array {
    const bytes = new Uint8Array(4 * this.#lanes.length)
    const view = new DataView(bytes.buffer)
    for (let index = 0; index < this.#lanes.length; index++)
      view.setInt32(4 * index, this.#lanes[index] as number, true)
    return bytes
  }

  /** The buckets in which encoded digests are others; undefined if those are not of as many buckets. */
  differencesTo(bytes: Uint8Array): Set<number> | undefined {
    if (bytes.length !== 4 * this.#lanes.length) return undefined
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const differences = new Set<number>()
    for (let index = 0; index < this.#lanes.length; index++) {
      if (view.getInt32(4 * index, true) !== this.#lanes[index]) differences.add(index >> 1)
    }
    return differences
  }
}
