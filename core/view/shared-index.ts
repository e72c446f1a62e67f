import type { Work } from './work.js'

/** How many items are looked at before others may come in between. */
const itemsAtOnce = 256

/** How many items there are per bucket, if their keys differ. */
const perBucket = 8

/** Finds items by a key. It never changes: a changed copy shares with it all buckets that are the same. */
export class SharedIndex<Item> {
  readonly #keysOf: (item: Item) => readonly string[]
  readonly #buckets: readonly (readonly Item[])[]

  constructor(keysOf: (item: Item) => readonly string[], buckets: readonly (readonly Item[])[]) {
    this.#keysOf = keysOf
    this.#buckets = buckets
  }

  static *make<Item>(items: readonly Item[], keysOf: (item: Item) => readonly string[]): Work<SharedIndex<Item>> {
    const buckets: Item[][] = Array.from({ length: Math.ceil(items.length / perBucket) || 1 }, () => [])
    let done = 0
    for (const item of items) {
      for (const place of placesOf(keysOf(item), buckets.length)) buckets[place]?.push(item)
      if (++done % itemsAtOnce === 0) yield
    }
    return new SharedIndex(keysOf, buckets)
  }

  /** Whether it is large enough. */
  suits(items: number): boolean {
    return items <= this.#buckets.length * perBucket * 4
  }

  get(key: string): readonly Item[] {
    const bucket = this.#buckets[placeOf(key, this.#buckets.length)] ?? []
    return bucket.filter((item) => this.#keysOf(item).includes(key))
  }

  with(removed: readonly Item[], added: readonly Item[]): SharedIndex<Item> {
    const buckets = this.#buckets.slice()
    const replace = (item: Item, replaced: (bucket: readonly Item[]) => readonly Item[]) => {
      for (const place of placesOf(this.#keysOf(item), buckets.length)) {
        buckets[place] = replaced(buckets[place] ?? [])
      }
    }
    for (const item of removed) replace(item, (bucket) => bucket.filter((known) => known !== item))
    for (const item of added) replace(item, (bucket) => [...bucket, item])
    return new SharedIndex(this.#keysOf, buckets)
  }
}

/** Each place once: two keys of one item may have the same. */
function placesOf(keys: readonly string[], places: number): Iterable<number> {
  const found = keys.map((key) => placeOf(key, places))
  return found.length > 1 ? new Set(found) : found
}

/** FNV-1a, within a number of places. */
function placeOf(key: string, places: number): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  return (hash >>> 0) % places
}
