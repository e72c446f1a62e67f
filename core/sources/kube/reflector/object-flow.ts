import type { KnownObjects } from './known-objects.js'
import { type EventType, isKubeObject, keyOf, type ObjectHandler, splitKey, versionOf } from './resource.js'

/** So many objects of a list are handed on in one update. */
const listBatch = 500

/** Hands objects on to the handler: only those that differ from what it has, and in batches of a good size. */
export class ObjectFlow {
  readonly #known: KnownObjects
  readonly #handler: ObjectHandler
  readonly #onEvent: (type: EventType) => void
  #listing = false
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

  /** Returns false for what is no object. */
  set(type: EventType, value: unknown): boolean {
    if (!isKubeObject(value)) return false
    this.#onEvent(type)
    if (!this.#known.set(keyOf(value), versionOf(value))) return true
    this.#handler.set(value)
    this.#waiting++
    return true
  }

  delete(value: unknown): boolean {
    if (!isKubeObject(value)) return false
    this.#remove(keyOf(value), this.#known.delete(keyOf(value)))
    return true
  }

  /** What has been read so far is a batch; those of a list are put together to larger ones. */
  endBatch(): void {
    if (this.#waiting === 0 || (this.#listing && this.#waiting < listBatch)) return
    this.#waiting = 0
    this.#handler.flush(false)
  }

  /** Everything that exists has been read. What was not in the list is gone. Returns how many objects there are. */
  completeList(): number {
    for (const key of this.#known.endList()) this.#remove(key, true)
    this.#listing = false
    this.#waiting = 0
    this.#handler.flush(true)
    return this.#known.size
  }

  #remove(key: string, wasKnown: boolean): void {
    this.#onEvent('DELETED')
    if (!wasKnown) return
    const { namespace, name } = splitKey(key)
    this.#handler.delete(namespace, name)
    this.#waiting++
  }
}
