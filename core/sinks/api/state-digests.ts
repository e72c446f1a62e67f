import { bucketCountFor, Digest, itemHash, placeOf } from '@kpng/api'
import { type Batch, ChangeSet, type SetItem, type Work } from '../../view/index.js'
import type { Chunk, ItemFrames } from './item-frames.js'

/** The hashes of a chunk's items, and the numbers from which their buckets follow. */
interface ChunkHashes {
  readonly hashes: readonly number[]
  readonly places: readonly number[]
  readonly sum: Digest
}

/** A frame begins with a flag and the length of the message. */
const frameHeader = 5

/** After so many batches others may come in between. */
const batchesAtOnce = 64

/** Digests of what watchers are told. What many watchers are told is hashed once, and kept as long as its frames. */
export class StateDigests {
  readonly #frames: ItemFrames
  readonly #hashes = new WeakMap<Chunk, ChunkHashes>()

  constructor(frames: ItemFrames) {
    this.#frames = frames
  }

  /** The digest of a whole state, and how many buckets suit it. */
  *whole({ setBatches }: ChangeSet): Work<{ digest: Digest; bucketCount: number }> {
    const digest = new Digest()
    let items = 0
    let batches = 0
    for (const batch of setBatches) {
      items += batch.items.length
      this.#addWhole(batch, digest)
      if (++batches % batchesAtOnce === 0) yield
    }
    return { digest, bucketCount: bucketCountFor(items) }
  }

  /** The digests of a whole state's buckets. */
  *buckets({ setBatches }: ChangeSet, count: number): Work<Digest> {
    const digest = new Digest(count)
    let batches = 0
    for (const batch of setBatches) {
      this.#addItems(batch, digest)
      if (++batches % batchesAtOnce === 0) yield
    }
    return digest
  }

  /** What of a whole state is in some buckets, as a change set for a watcher that has the rest. */
  *within({ revision, setBatches }: ChangeSet, count: number, buckets: ReadonlySet<number>): Work<ChangeSet> {
    const isWanted = new Uint8Array(count)
    for (const bucket of buckets) isWanted[bucket] = 1
    const wanted: SetItem[] = []
    let batches = 0
    for (const batch of setBatches) {
      let done = 0
      for (const { places } of this.#hashesOf(batch)) {
        for (const place of places) {
          const item = batch.items[done++] as SetItem
          if (isWanted[place % count] && !batch.except?.has(item.path)) wanted.push(item)
        }
      }
      if (++batches % batchesAtOnce === 0) yield
    }
    return new ChangeSet({
      revision,
      reset: false,
      setBatches: [{ items: wanted, isShared: false }],
      deleteBatches: [],
      triggers: [],
    })
  }

  #addWhole(batch: Batch<SetItem>, digest: Digest): void {
    if (batch.except) this.#addItems(batch, digest)
    else for (const { sum } of this.#hashesOf(batch)) digest.addAll(sum)
  }

  #addItems(batch: Batch<SetItem>, digest: Digest): void {
    const { items, except } = batch
    let done = 0
    for (const { hashes, places } of this.#hashesOf(batch)) {
      for (let index = 0; index < hashes.length; index++, done++) {
        if (except?.has((items[done] as SetItem).path)) continue
        digest.add(hashes[index] as number, places[index])
      }
    }
  }

  *#hashesOf(batch: Batch<SetItem>): Generator<ChunkHashes> {
    let done = 0
    for (const chunk of this.#frames.chunksOf(batch)) {
      let known = this.#hashes.get(chunk)
      if (!known) {
        known = hashesOf(chunk, batch.items, done)
        this.#hashes.set(chunk, known)
      }
      yield known
      done += chunk.ends.length
    }
  }
}

function hashesOf({ bytes, ends }: Chunk, items: readonly SetItem[], first: number): ChunkHashes {
  const sum = new Digest()
  const hashes: number[] = []
  const places: number[] = []
  let start = 0
  ends.forEach((end, index) => {
    // What cannot be encoded is told to nobody, and adds nothing.
    hashes.push(end > start ? itemHash(bytes, start + frameHeader, end) : 0)
    places.push(placeOf((items[first + index] as SetItem).path))
    sum.add(hashes[index] as number)
    start = end
  })
  return { hashes, places, sum }
}
