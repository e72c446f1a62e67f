import { create } from '@bufbuild/protobuf'
import { Digest, isBucketCount, KpngError, localv1, placeOf } from '@kpng/api'

/** The operations of one change set, up to its Sync. */
export interface Operations {
  readonly reset: boolean
  readonly sets: readonly localv1.Value[]
  readonly deletes: readonly localv1.Ref[]
  readonly triggers: readonly localv1.Trigger[]
  readonly timeline: localv1.Timeline | undefined
}

/** A change set as it came, and the hashes of what it sets. */
export interface Received {
  readonly reset: boolean
  readonly sets: readonly localv1.Value[]
  /** Of each of the sets. */
  readonly hashes: readonly number[]
  readonly deletes: readonly localv1.Ref[]
  readonly sync: localv1.EmptyOp
}

/**
 * What a client has, as hashes. After a lost connection it sends the digest of them, and the server sends only what differs. A server of the Go lineage
 * sends no position: it cannot resume, so nothing is kept.
 */
export class KnownState {
  /** The hash of each item, by set and path. */
  #items = new Map<localv1.Set, Map<string, number>>()
  #canResume = false

  /** For the first request of a connection. */
  get known(): localv1.Known {
    return create(localv1.KnownSchema, this.#canResume ? { digest: this.#digest(1) } : {})
  }

  /** The digest of each bucket. Throws if the server asks for a number of buckets that no server needs: 2³² of them would end this process. */
  knownIn(buckets: number): localv1.Known {
    if (!isBucketCount(buckets)) throw broken(`asked for the digests of ${buckets} buckets`)
    return create(localv1.KnownSchema, { buckets: this.#digest(buckets) })
  }

  /**
   * Takes over a change set, and returns what it changes. Throws if it cannot be right; then everything is forgotten, so that the next connection
   * gets the whole state.
   * @param isFirst whether it is the first one of a connection. It replaces everything, unless the server says that the client resumed: a server of the Go
   * lineage sends no Reset if it has nothing
   */
  take(received: Received, isFirst: boolean): Operations {
    try {
      return this.#take(received, isFirst)
    } catch (error) {
      this.#items = new Map()
      this.#canResume = false
      throw error
    }
  }

  #take({ reset, sets, hashes, deletes, sync }: Received, isFirst: boolean): Operations {
    const { triggers, timeline, position, resumed } = sync
    if (resumed && (reset || !isFirst || !this.#canResume))
      throw broken('continues a state that this client does not have')
    const replacesAll = reset || (isFirst && !resumed)
    if (replacesAll || !position) this.#items = new Map()
    this.#canResume = position !== undefined
    if (!position) return { reset: replacesAll, sets, deletes, triggers, timeline }
    const changed = resumed ? sets.filter((value, index) => !this.#has(value, hashes[index] as number)) : sets
    const gone = resumed ? [...deletes, ...this.#goneFrom(resumed, sets)] : deletes
    sets.forEach(({ ref }, index) => {
      if (ref) this.#of(ref.set).set(ref.path, hashes[index] as number)
    })
    for (const { set, path } of gone) this.#of(set).delete(path)
    if (resumed) this.#verify(resumed)
    return { reset: replacesAll, sets: changed, deletes: gone, triggers, timeline }
  }

  /** After resuming, both sides must have the same. A server of kpng 0.1.0 does not say what it has. */
  #verify({ digest }: localv1.Resumed): void {
    if (digest.length === 0 || Buffer.compare(digest, this.#digest(1)) === 0) return
    throw new KpngError(
      'unavailable',
      'After the connection was lost, the server sent what changed, but the result is not what the server has. The whole state is requested again.',
    )
  }

  #of(set: localv1.Set): Map<string, number> {
    let items = this.#items.get(set)
    if (!items) {
      items = new Map()
      this.#items.set(set, items)
    }
    return items
  }

  #has({ ref }: localv1.Value, hash: number): boolean {
    return ref !== undefined && this.#items.get(ref.set)?.get(ref.path) === hash
  }

  /** What the client has in the buckets that were sent anew, and the server does not. */
  #goneFrom({ bucketCount, buckets }: localv1.Resumed, sets: readonly localv1.Value[]): localv1.Ref[] {
    if (buckets.length === 0) return []
    if (!isBucketCount(bucketCount)) throw broken(`divides its state into ${bucketCount} buckets`)
    const replaced = new Set(buckets)
    const sent = new Set(sets.map(({ ref }) => `${ref?.set} ${ref?.path}`))
    const gone: localv1.Ref[] = []
    // Endpoints, whose sets have higher numbers, go before their services.
    for (const [set, items] of [...this.#items].sort(([a], [b]) => b - a)) {
      for (const path of items.keys()) {
        if (!replaced.has(placeOf(path) % bucketCount) || sent.has(`${set} ${path}`)) continue
        gone.push(create(localv1.RefSchema, { set, path }))
      }
    }
    return gone
  }

  #digest(buckets: number): Uint8Array {
    const digest = new Digest(buckets)
    for (const items of this.#items.values()) {
      for (const [path, hash] of items) digest.add(hash, buckets > 1 ? placeOf(path) : 0)
    }
    return digest.toBytes()
  }
}

const broken = (what: string) =>
  new KpngError('invalid', `The server ${what}, which the kpng API does not allow. Is it a kpng server?`)
