import { randomBytes } from 'node:crypto'
import type { localv1 } from '@kpng/api'
import type { Bookmark, Store } from '../../store/index.js'
import type { View } from '../../view/index.js'
import { ChangeSet } from './change-set.js'
import type { ItemFrames } from './item-frames.js'
import { KeptPlaces } from './kept-places.js'
import { StateDigests } from './state-digests.js'
import type { SyncOptions } from './sync-frames.js'

/**
 * Lets watchers that come back continue with what they have. One that comes back to the same server is told what changed since it left. Any other
 * says a digest of what it has: if it has the whole state, nothing is sent. If not, it is asked for the digests of buckets, and is sent what
 * is in those that differ.
 */
export class Resuming {
  /** The name of this run of the server. */
  readonly instance = randomBytes(8).toString('hex')
  readonly #places: KeptPlaces
  readonly #digests: StateDigests
  readonly #view: View

  constructor({ store, view, frames }: { store: Store; view: View; frames: ItemFrames }) {
    this.#places = new KeptPlaces(store)
    this.#digests = new StateDigests(frames)
    this.#view = view
  }

  /** Where a watcher was that is back, if that is still known. */
  placeOf(watcher: string, { position }: localv1.Known): Bookmark | undefined {
    if (position?.instance !== this.instance) return undefined
    return this.#places.take(`${position.revision} ${watcher}`)
  }

  /** A watcher has gone, and has everything up to its bookmark. `told` is the revision of the last thing that it was told. */
  keepPlace(watcher: string, told: number, bookmark: Bookmark): void {
    this.#places.keep(`${told} ${watcher}`, bookmark)
  }

  /**
   * What a watcher is told of the first change set of a stream, given what it has.
   * @param first what changed since it left, or the whole state
   * @param askForBuckets gets the digest of each bucket from the watcher, given how many there are
   */
  async difference(
    { digest: known }: localv1.Known,
    first: ChangeSet,
    askForBuckets: (count: number) => Promise<Uint8Array>,
  ): Promise<{ changeSet: ChangeSet } & Pick<SyncOptions, 'resumed'>> {
    const { whole } = first
    if (!whole) return { changeSet: first, resumed: everywhere }
    if (known.length === 0) return { changeSet: first }
    const { turns } = this.#view
    const { revision } = first
    const { digest, bucketCount } = await turns.run(this.#digests.whole(whole))
    if (digest.differencesTo(known)?.size === 0) return { changeSet: ChangeSet.nothing(revision), resumed: everywhere }
    const theirs = await askForBuckets(bucketCount)
    const differences = await turns.run(this.#digests.differences(whole, theirs))
    if (!differences) return { changeSet: first }
    if (differences.size > bucketCount / 2) {
      // Most of the state: all of it is sent, since its frames are there already and are the same for everybody.
      const { setBatches } = first
      const changeSet = new ChangeSet({ ...ChangeSet.nothing(revision), setBatches, whole })
      return {
        changeSet,
        resumed: { bucketCount, buckets: Array.from({ length: bucketCount }, (_, bucket) => bucket) },
      }
    }
    const items = await turns.run(this.#digests.within(whole, differences))
    const changeSet = new ChangeSet({ ...ChangeSet.nothing(revision), setBatches: [{ items, isShared: false }] })
    return { changeSet, resumed: { bucketCount, buckets: [...differences] } }
  }
}

/** The change set says all that changed. */
const everywhere = { bucketCount: 0, buckets: [] }
