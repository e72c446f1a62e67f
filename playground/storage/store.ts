import { freeze } from '../objects/json.js'
import type { KubeObject } from '../objects/types.js'

/** One version of an object. Its JSON is made once, when first needed, and shared by every list and watch. */
export class Stored {
  #encoded: string | undefined

  constructor(
    readonly key: string,
    readonly revision: number,
    readonly object: Readonly<KubeObject>,
  ) {}

  get json(): string {
    this.#encoded ??= JSON.stringify(this.object)
    return this.#encoded
  }

  /** A version that is no longer the current one is rarely asked for again; its text need not be kept. */
  forgetJson(): void {
    this.#encoded = undefined
  }

  /** As an item of a list, where the API server leaves out what the list already says. */
  get itemJson(): string {
    const { kind, apiVersion } = this.object
    return `{${this.json.slice(JSON.stringify({ kind, apiVersion }).length)}`
  }
}

/** `itemJson` counts on kind and apiVersion coming first. */
export const kindFirst = ({ kind, apiVersion, metadata, ...rest }: Readonly<KubeObject>): KubeObject => ({
  kind,
  apiVersion,
  metadata,
  ...rest,
})

export const atRevision = (object: Readonly<KubeObject>, revision: number): KubeObject =>
  kindFirst({ ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } })

/** A change in the log; `before` and `after` are what makes history readable backwards. */
export interface Change {
  readonly revision: number
  readonly resource: string
  readonly key: string
  readonly before?: Stored
  /** The new version; for a deletion the last one, with the revision of the deletion. */
  readonly after: Stored
  readonly deleted: boolean
}

export type Listener = (change: Change) => void

export interface StoreOptions {
  /** How many changes are kept for watches that resume; older versions are "expired". */
  readonly logSize: number
}

/**
 * Objects by resource and key, one revision counter for all, and a bounded log of changes. Everything is synchronous: a
 * read-check-write in one turn of the event loop is a transaction.
 */
export class Store {
  readonly #objects = new Map<string, Map<string, Stored>>()
  readonly #sorted = new Map<string, readonly Stored[]>()
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #everyone = new Set<Listener>()
  #log: Change[] = []
  #current = 1
  #oldest = 1
  readonly #options: StoreOptions

  constructor(options: StoreOptions) {
    this.#options = options
  }

  get revision(): number {
    return this.#current
  }

  /** Versions older than this cannot be read or watched from any more. */
  get compactedRevision(): number {
    return this.#oldest
  }

  get(resource: string, key: string): Stored | undefined {
    return this.#objects.get(resource)?.get(key)
  }

  /** All objects of a resource, in the order of their keys. */
  list(resource: string): readonly Stored[] {
    let all = this.#sorted.get(resource)
    if (!all) {
      all = [...(this.#objects.get(resource)?.values() ?? [])].sort((a, b) => (a.key < b.key ? -1 : 1))
      this.#sorted.set(resource, all)
    }
    return all
  }

  /** As `list` was at an earlier revision: today's state with the later changes taken back. Undefined when compacted. */
  listAt(resource: string, revision: number): readonly Stored[] | undefined {
    if (revision < this.#oldest) return undefined
    const later = this.since(revision).filter((change) => change.resource === resource)
    if (later.length === 0) return this.list(resource)
    const state = new Map(this.#objects.get(resource))
    for (const change of later.reverse()) {
      if (change.before) state.set(change.key, change.before)
      else state.delete(change.key)
    }
    return [...state.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** The changes after a revision that is not compacted. */
  since(revision: number): Change[] {
    return this.#log.slice(countWhile(this.#log, (change) => change.revision <= revision))
  }

  /** Stores a new version; the store gives it its resourceVersion. */
  put(resource: string, key: string, object: KubeObject): Stored {
    return this.#append(resource, key, object, false)
  }

  remove(resource: string, key: string): Stored | undefined {
    const last = this.get(resource, key)
    return last && this.#append(resource, key, last.object, true)
  }

  #append(resource: string, key: string, object: KubeObject, deleted: boolean): Stored {
    const revision = ++this.#current
    const before = this.get(resource, key)
    const after = new Stored(key, revision, freeze(atRevision(object, revision)))
    const change: Change = { revision, resource, key, after, deleted, ...(before ? { before } : {}) }
    this.replay(change)
    before?.forgetJson()
    for (const listener of this.#everyone) listener(change)
    for (const listener of this.#listeners.get(resource) ?? []) listener(change)
    return after
  }

  /** Takes a change as it is, also one read from a file. */
  replay(change: Change): void {
    const { resource, key, revision } = change
    const byKey = this.#objects.get(resource) ?? new Map<string, Stored>()
    this.#objects.set(resource, byKey)
    if (change.deleted) byKey.delete(key)
    else byKey.set(key, change.after)
    this.#resort(change)
    this.#current = Math.max(this.#current, revision)
    this.#log.push(change)
    // Trimmed in steps: shifting the array on each change would cost its length each time.
    if (this.#log.length > this.#options.logSize * 1.25)
      this.compact(this.#log[this.#log.length - this.#options.logSize - 1]?.revision)
  }

  /** Lists are handed out, so a changed one is a copy; copying pointers is far cheaper than sorting again. */
  #resort({ resource, key, after, deleted }: Change): void {
    const all = this.#sorted.get(resource)
    if (!all) return
    const index = countWhile(all, (stored) => stored.key < key)
    const known = all[index]?.key === key ? 1 : 0
    this.#sorted.set(resource, deleted ? all.toSpliced(index, known) : all.toSpliced(index, known, after))
  }

  /** Forgets the changes up to a revision (default: all); lists and watches from before it are answered with 410. */
  compact(revision = this.#current): void {
    this.#log = this.since(revision)
    this.#oldest = Math.max(this.#oldest, revision)
  }

  /** Everything, for a snapshot. */
  *entries(): Iterable<{ resource: string; stored: Stored }> {
    for (const [resource, byKey] of this.#objects) for (const stored of byKey.values()) yield { resource, stored }
  }

  /** Sets the state a file remembered; what was before is not watchable. */
  load(revision: number, entries: Iterable<{ resource: string; stored: Stored }>): void {
    for (const { resource, stored } of entries) {
      this.replay({ revision: stored.revision, resource, key: stored.key, after: stored, deleted: false })
    }
    this.#current = Math.max(this.#current, revision)
    this.compact()
  }

  /** Calls back on each change of one resource, or of all (`undefined`), in the turn it happens. Returns the way out. */
  subscribe(resource: string | undefined, listener: Listener): () => void {
    const own = resource === undefined ? this.#everyone : (this.#listeners.get(resource) ?? new Set())
    if (resource !== undefined) this.#listeners.set(resource, own)
    own.add(listener)
    return () => own.delete(listener)
  }
}

/** How many items at the start of an ordered list are as asked; found by halves. */
function countWhile<T>(items: readonly T[], isAsAsked: (item: T) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isAsAsked(items[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}
