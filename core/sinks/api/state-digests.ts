import { bucketCountFor, Digest, itemHash, placeOf } from '@kpng/api'
import { SharedWork, type Work } from '../../view/index.js'
import type { Batch, CommonState, WholeState } from './change-set.js'
import type { SetItem } from './item.js'
import type { Chunk, ItemFrames } from './item-frames.js'

/** The hashes of a chunk's items, and the numbers from which their buckets follow. */
interface ChunkHashes {
  readonly hashes: readonly number[]
  readonly places: readonly number[]
}

/** What is worked out once of a state that many watchers have in common. */
interface CommonDigests {
  readonly whole: Digest
  readonly bucketCount: number
  readonly buckets: Digest
  readonly itemsIn: readonly (readonly SetItem[])[]
}

/** A frame begins with a flag and the length of the message. */
const frameHeader = 5

/** After this number of batches others may come in between. */
const batchesAtOnce = 64

/**
 * Digests of what watchers have. What many of them have in common is hashed once. For each watcher only the batches are looked at that are its own, so that
 * thousands can come back at once.
 */
export class StateDigests {
  readonly #frames: ItemFrames
  readonly #hashes = new WeakMap<Chunk, ChunkHashes>()
  readonly #common = new WeakMap<CommonState, SharedWork<CommonDigests>>()
  #scratch = new Digest()

  constructor(frames: ItemFrames) {
    this.#frames = frames
  }

  /** The digest of a whole state, and how many buckets suit it. */
  *whole(state: WholeState): Work<{ digest: Digest; bucketCount: number }> {
    const { whole, bucketCount } = yield* this.#of(state.common)
    return { digest: this.#corrected(whole, state), bucketCount }
  }

  /** The digests of the buckets of a whole state. It is changed by the next call: 32 KiB for each of thousands of watchers would be work for the garbage collector. */
  *buckets(state: WholeState): Work<Digest> {
    const { buckets } = yield* this.#of(state.common)
    if (this.#scratch.buckets !== buckets.buckets) this.#scratch = new Digest(buckets.buckets)
    return this.#corrected(buckets, state, this.#scratch)
  }

  /** The buckets in which a watcher has something else; undefined if its digests are not of as many buckets. */
  *differences(state: WholeState, theirs: Uint8Array): Work<Set<number> | undefined> {
    return (yield* this.buckets(state)).differencesTo(theirs)
  }

  /** What of a whole state is in some buckets: services, then endpoints. */
  *within({ head, common, without, own }: WholeState, buckets: ReadonlySet<number>): Work<SetItem[]> {
    const { itemsIn, bucketCount } = yield* this.#of(common)
    const wanted = new Set<SetItem>()
    for (const bucket of buckets) for (const item of itemsIn[bucket] ?? []) wanted.add(item)
    for (const batch of without) this.#each(batch, (_, __, item) => wanted.delete(item))
    for (const batch of [...head, ...own]) {
      this.#each(batch, (_, place, item) => {
        if (buckets.has(place % bucketCount)) wanted.add(item)
      })
    }
    return [...wanted].sort((a, b) => a.set - b.set)
  }

  /** What is common, without what this watcher has not, and with what is its own. */
  #corrected(common: Digest, { head, without, own }: WholeState, digest = new Digest()): Digest {
    digest.set(common)
    for (const batch of without) this.#each(batch, (hash, place) => digest.remove(hash, place))
    for (const batch of [...head, ...own]) this.#each(batch, (hash, place) => digest.add(hash, place))
    return digest
  }

  *#of(common: CommonState): Work<CommonDigests> {
    let making = this.#common.get(common)
    if (!making) {
      making = new SharedWork(this.#make(common))
      this.#common.set(common, making)
    }
    return yield* making.finish()
  }

  *#make({ batches }: CommonState): Work<CommonDigests> {
    const bucketCount = bucketCountFor(batches.reduce((sum, { items }) => sum + items.length, 0))
    const whole = new Digest()
    const buckets = new Digest(bucketCount)
    const itemsIn: SetItem[][] = Array.from({ length: bucketCount }, () => [])
    for (const [index, batch] of batches.entries()) {
      this.#each(batch, (hash, place, item) => {
        whole.add(hash)
        buckets.add(hash, place)
        itemsIn[place % bucketCount]?.push(item)
      })
      if (index % batchesAtOnce === 0) yield
    }
    return { whole, bucketCount, buckets, itemsIn }
  }

  #each({ items, isShared, except }: Batch<SetItem>, use: (hash: number, place: number, item: SetItem) => void): void {
    let done = 0
    for (const chunk of this.#frames.chunksOf({ items, isShared })) {
      const { hashes, places } = this.#hashesOf(chunk, items, done)
      for (let index = 0; index < hashes.length; index++) {
        const item = items[done++] as SetItem
        if (!except?.has(item.path)) use(hashes[index] as number, places[index] as number, item)
      }
    }
  }

  #hashesOf(chunk: Chunk, items: readonly SetItem[], first: number): ChunkHashes {
    let known = this.#hashes.get(chunk)
    if (!known) {
      known = hash(chunk, items, first)
      this.#hashes.set(chunk, known)
    }
    return known
  }
}

function hash({ bytes, ends }: Chunk, items: readonly SetItem[], first: number): ChunkHashes {
  const hashes: number[] = []
  const places: number[] = []
  let start = 0
  for (const [index, end] of ends.entries()) {
    // What cannot be encoded is told to nobody, and adds nothing.
    hashes.push(end > start ? itemHash(bytes, start + frameHeader, end) : 0)
    places.push(placeOf((items[first + index] as SetItem).path))
    start = end
  }
  return { hashes, places }
}
