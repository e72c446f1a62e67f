import type { ServiceEntry, Store } from '../store/index.js'

interface Kept<T> {
  readonly entry: ServiceEntry
  readonly value: T
  readonly weight: number
}

export interface PerEntryOptions<T> {
  readonly store: Store
  /** Works it out. `similar` is what another revision of the same service gave, to take over from it what did not change. */
  readonly make: (entry: ServiceEntry, similar: T | undefined) => T
  /** Told when the entry is no longer the store's: what only new watchers need can go. */
  readonly retire?: (value: T) => void
}

/** So many endpoints' worth of what is superseded is kept at least; more where the store itself is larger. */
const supersededWeight = 100_000
/** In endpoints: what an entry costs beside them. */
const entryWeight = 50

/**
 * Something that is worked out from entries, once each. It is kept for the entries that the store holds, and for the last ones that
 * they superseded, since a change is told from both. It must not hang on the entries themselves: the log of changes holds
 * thousands of old ones. A watcher that lags far behind has it worked out again.
 */
export class PerEntry<T> {
  readonly #options: PerEntryOptions<T>
  readonly #current = new Map<string, Kept<T>>()
  #currentWeight = 0
  /** The oldest first. */
  readonly #superseded = new Map<ServiceEntry, Kept<T>>()
  #supersededWeight = 0
  #revision: number

  constructor(options: PerEntryOptions<T>) {
    this.#options = options
    this.#revision = options.store.revision
  }

  of(entry: ServiceEntry): T {
    const { store, make } = this.#options
    this.#followDeletions()
    const current = this.#current.get(entry.path)
    const known = current?.entry === entry ? current : this.#superseded.get(entry)
    if (known) return known.value
    const made = { entry, value: make(entry, current?.value), weight: weightOf(entry) }
    if (store.entry(entry.path) === entry) {
      if (current) this.#supersede(current)
      this.#current.set(entry.path, made)
      this.#currentWeight += made.weight
    } else this.#keepSuperseded(made)
    return made.value
  }

  /** A changed entry is superseded when the new one is asked for. A deleted one has no successor. */
  #followDeletions(): void {
    const { store } = this.#options
    if (this.#revision === store.revision) return
    const paths = store.changesSince(this.#revision)?.services.keys() ?? [...this.#current.keys()]
    this.#revision = store.revision
    for (const path of paths) {
      const current = this.#current.get(path)
      if (current && !store.entry(path)) this.#supersede(current)
    }
  }

  #supersede(kept: Kept<T>): void {
    this.#current.delete(kept.entry.path)
    this.#currentWeight -= kept.weight
    this.#keepSuperseded(kept)
  }

  #keepSuperseded(kept: Kept<T>): void {
    this.#options.retire?.(kept.value)
    this.#superseded.set(kept.entry, kept)
    this.#supersededWeight += kept.weight
    for (const oldest of this.#superseded.values()) {
      if (this.#supersededWeight <= Math.max(supersededWeight, this.#currentWeight)) return
      this.#superseded.delete(oldest.entry)
      this.#supersededWeight -= oldest.weight
    }
  }
}

function weightOf(entry: ServiceEntry): number {
  let weight = entryWeight
  for (const endpoints of entry.sources.values()) weight += endpoints.length
  return weight
}
