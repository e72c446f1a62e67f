import { create } from '@bufbuild/protobuf'
import { Digest, localv1, placeOf } from '@kpng/api'

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
 * What a client has, as hashes: enough to say it to a server after a lost connection, so that only the difference is sent. A server that is older
 * than this, or of the Go lineage, says no position and sends everything: then nothing is kept.
 */
export class KnownState {
  /** The hash of each item, by set and path. */
  #items = new Map<localv1.Set, Map<string, number>>()
  #position: localv1.Position | undefined

  /** What the first request of a connection says. */
  get known(): localv1.Known {
    const known = create(localv1.KnownSchema)
    if (!this.#position) return known
    known.position = this.#position
    known.digest = this.#digest(1)
    return known
  }

  /** What the client has in each bucket. */
  knownIn(buckets: number): localv1.Known {
    return create(localv1.KnownSchema, { buckets: this.#digest(buckets) })
  }

  /**
   * Takes over a change set, and says what it changes.
   * @param isFirst it is the first one of a connection. It replaces everything, unless the server says that the client resumed: a server of the Go
   * lineage sends no Reset if it has nothing
   */
  take({ reset, sets, hashes, deletes, sync }: Received, isFirst: boolean): Operations {
    const { triggers, timeline, position, resumed } = sync
    const replacesAll = reset || (isFirst && !resumed)
    if (replacesAll || !position) this.#items = new Map()
    this.#position = position
    if (!position) return { reset: replacesAll, sets, deletes, triggers, timeline }
    const changed = resumed ? sets.filter((value, index) => !this.#has(value, hashes[index] as number)) : sets
    const gone = resumed ? [...deletes, ...this.#goneFrom(resumed, sets)] : deletes
    sets.forEach(({ ref }, index) => {
      if (ref) this.#of(ref.set).set(ref.path, hashes[index] as number)
    })
    for (const { set, path } of gone) this.#of(set).delete(path)
    return { reset: replacesAll, sets: changed, deletes: gone, triggers, timeline }
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
