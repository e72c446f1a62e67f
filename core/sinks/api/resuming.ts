import type { View } from '../../view/index.js'
import { ChangeSet } from './change-set.js'
import type { ItemFrames } from './item-frames.js'
import { StateDigests } from './state-digests.js'
import type { SyncOptions } from './sync-frames.js'

/**
 * Lets watchers that come back continue with what they have. Each sends the digest of its state. If it is that of the whole state, nothing is sent. If not,
 * the watcher is asked for the digest of each bucket, and is sent what is in those that differ. It does not matter to which server it comes back, nor how
 * long it was away: the server keeps nothing for a watcher that has gone.
 */
export class Resuming {
  readonly #digests: StateDigests
  readonly #view: View

  constructor({ view, frames }: { view: View; frames: ItemFrames }) {
    this.#digests = new StateDigests(frames)
    this.#view = view
  }

  /**
   * What a watcher is sent as the first change set of a stream, given what it has.
   * @param known the digest of what it has; empty if it has nothing
   * @param first the whole state
   * @param askForBuckets gets the digest of each bucket from the watcher, given how many there are
   */
  async difference(
    known: Uint8Array,
    first: ChangeSet,
    askForBuckets: (count: number) => Promise<Uint8Array>,
  ): Promise<{ changeSet: ChangeSet } & Pick<SyncOptions, 'resumed'>> {
    const { whole } = first
    if (!whole || known.length === 0) return { changeSet: first }
    const { turns } = this.#view
    const { revision } = first
    const { digest: whatItShouldHave, bucketCount } = await turns.run(this.#digests.whole(whole))
    if (whatItShouldHave.differencesTo(known)?.size === 0)
      return { changeSet: ChangeSet.nothing(revision), resumed: asItWas }
    const theirs = await askForBuckets(bucketCount)
    const differences = await turns.run(this.#digests.differences(whole, theirs))
    if (!differences) return { changeSet: first }
    // The watcher checks that it has the same afterwards.
    const resumed = { bucketCount, buckets: [...differences], digest: whatItShouldHave.toBytes() }
    if (differences.size > bucketCount / 2) {
      // Most of the state: all of it is sent, since its frames are there already and are the same for everybody.
      const { setBatches } = first
      const changeSet = new ChangeSet({ ...ChangeSet.nothing(revision), setBatches, whole })
      return { changeSet, resumed: { ...resumed, buckets: Array.from({ length: bucketCount }, (_, bucket) => bucket) } }
    }
    const items = await turns.run(this.#digests.within(whole, differences))
    const changeSet = new ChangeSet({ ...ChangeSet.nothing(revision), setBatches: [{ items, isShared: false }] })
    return { changeSet, resumed }
  }
}

/** The watcher has the whole state already. */
const asItWas = { bucketCount: 0, buckets: [] }
