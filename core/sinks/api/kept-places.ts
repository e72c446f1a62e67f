import type { Bookmark, Store } from '../../store/index.js'

/** How long a watcher may be away. */
const keptMs = 5 * 60_000

/** More watchers than one server takes. */
const maxKept = 20_000

/**
 * Where watchers were that have gone. One that comes back to the same server continues there. The store keeps what they need to know within its own
 * limit, and forgets those that are too far behind.
 */
export class KeptPlaces {
  readonly #store: Store
  readonly #places = new Map<string, { readonly bookmark: Bookmark; readonly timer: NodeJS.Timeout }>()

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Keeps the place of a watcher.
   * @param watcher what it watches, and the revision of the last thing that it was told. Another watcher of the same with the same revision has the same state
   */
  keep(watcher: string, bookmark: Bookmark): void {
    this.#drop(watcher)
    if (this.#places.size >= maxKept) {
      this.#store.release(bookmark)
      return
    }
    const timer = setTimeout(() => this.#drop(watcher), keptMs).unref()
    this.#places.set(watcher, { bookmark, timer })
  }

  /** The bookmark of a watcher that is back. The caller releases it. */
  take(watcher: string): Bookmark | undefined {
    const kept = this.#places.get(watcher)
    this.#places.delete(watcher)
    clearTimeout(kept?.timer)
    return kept?.bookmark
  }

  #drop(watcher: string): void {
    const bookmark = this.take(watcher)
    if (bookmark) this.#store.release(bookmark)
  }
}
