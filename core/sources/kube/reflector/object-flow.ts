import type { KnownObjects } from './known-objects.js'
import { type EventType, isKubeObject, keyOf, type ObjectHandler, splitKey, versionOf } from './resource.js'

/** So many objects of the first list are handed on in one update. */
const listBatch = 500

/** Hands objects on to the handler: only those that differ from what it has, and in batches of a good size. */
export class ObjectFlow {
  readonly #known: KnownObjects
  readonly #handler: ObjectHandler
  readonly #onEvent: (type: EventType) => void
  #listing = false
  #hasListed = false
  #waiting = 0

  constructor(known: KnownObjects, handler: ObjectHandler, onEvent: (type: EventType) => void) {
    this.#known = known
    this.#handler = handler
    this.#onEvent = onEvent
  }

  get listing(): boolean {
    return this.#listing
  }

  /** A complete list begins. When one was under way, what it brought so far is true and stays; only its end is void. */
  startList(): void {
    this.#listing = true
    this.#known.startList()
  }

  set(type: EventType, value: unknown): void {
    if (!isKubeObject(value)) {
      this.#handler.nameless()
      return
    }
    this.#onEvent(type)
    if (!this.#known.set(keyOf(value), versionOf(value))) return
    this.#handler.set(value)
    this.#waiting++
  }

  delete(value: unknown): void {
    if (isKubeObject(value)) this.#remove(keyOf(value), this.#known.delete(keyOf(value)))
    else this.#handler.nameless()
  }

  /**
   * What has been read so far is a batch. The objects of the first list are put together to larger ones: nothing is served before
   * it is complete. Those of a later list wait for its end: a part of it is a state that never was, in which endpoints may have
   * left one slice and not come to another yet.
   */
  endBatch(): void {
    const enough = !this.#listing ? 1 : this.#hasListed ? Number.POSITIVE_INFINITY : listBatch
    if (this.#waiting < enough) return
    this.#waiting = 0
    this.#handler.flush(false)
  }

  /** Everything that exists has been read. What was not in the list is gone. Returns how many objects there are. */
  completeList(): number {
    for (const key of this.#known.endList()) this.#remove(key, true)
    this.#listing = false
    this.#hasListed = true
    this.#waiting = 0
    this.#handler.flush(true)
    return this.#known.size
  }

  /** Versions no longer tell what differs: the next list is handed on as a whole. */
  forgetVersions(): void {
    this.#known.forgetVersions()
  }

  #remove(key: string, wasKnown: boolean): void {
    this.#onEvent('DELETED')
    if (!wasKnown) return
    const { namespace, name } = splitKey(key)
    this.#handler.delete(namespace, name)
    this.#waiting++
  }
}
