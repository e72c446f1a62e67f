import type { globalv1, localv1 } from '@kpng/api'
import { type Bookmark, type Changed, type ChangeRange, History, weightOf } from './history.js'
import type { ServiceEntry } from './records.js'
import { type Kind, type Tables, Transaction } from './transaction.js'

export interface StoreOptions {
  /**
   * How many superseded endpoints are kept for readers that lag behind. Default: 200,000 (some tens of megabytes), or twice what the
   * store holds if that is more.
   */
  readonly maxSupersededEndpoints?: number
}

const leastSupersededEndpoints = 200_000

/**
 * What the cluster is. A source writes it, views read it; neither knows the other.
 *
 * Guarantees: an update is atomic; an update that changes nothing makes no revision; entries are immutable; what
 * a reader needs to find out what changed since its bookmark is kept or, if it lags too far behind, the reader is told so.
 */
export class Store {
  readonly #tables: Tables = {
    entries: new Map(),
    nodes: new Map(),
    serviceCidrs: new Map(),
    serviceOfSource: new Map(),
  }
  readonly #history = new History()
  readonly #maxSupersededEndpoints: number | undefined
  #weight = 0
  readonly #awaited = new Set<Kind>(['services', 'endpoints', 'nodes'])
  readonly #listeners = new Set<() => void>()
  #revision = 0
  #announcing = false
  #snapshot: readonly ServiceEntry[] | undefined

  constructor({ maxSupersededEndpoints }: StoreOptions = {}) {
    this.#maxSupersededEndpoints = maxSupersededEndpoints
  }

  /** Grows by one with each update that changed something. */
  get revision(): number {
    return this.#revision
  }

  /** Whether the source has read every kind of object completely. Stays true from then on. */
  get synced(): boolean {
    return this.#awaited.size === 0
  }

  /**
   * Applies all writes of the function, or none when it throws. Returns the revision that holds them.
   * @param receivedAtMs when the source received what it writes (Unix time), for tracing
   */
  update(write: (transaction: Transaction) => void, receivedAtMs?: number): number {
    const transaction = new Transaction(this.#tables)
    write(transaction)
    transaction.dropUnchanged()
    const wasSynced = this.synced
    for (const kind of transaction.synced) this.#awaited.delete(kind)
    const changed = this.#commit(transaction, receivedAtMs)
    if (changed || wasSynced !== this.synced) this.#announce()
    return this.#revision
  }

  entry(path: string): ServiceEntry | undefined {
    return this.#tables.entries.get(path)
  }

  node(name: string): globalv1.Node | undefined {
    return this.#tables.nodes.get(name)
  }

  get nodes(): ReadonlyMap<string, globalv1.Node> {
    return this.#tables.nodes
  }

  get serviceCidrs(): ReadonlyMap<string, localv1.ServiceCIDR> {
    return this.#tables.serviceCidrs
  }

  /** All entries of this revision. The array is shared by all who ask within one revision and never changes. */
  entries(): readonly ServiceEntry[] {
    this.#snapshot ??= [...this.#tables.entries.values()]
    return this.#snapshot
  }

  /** Marks the newest revision. What changes from now on is kept for the caller until it calls `release`. */
  bookmark(): Bookmark {
    return this.#history.add(this.#revision)
  }

  /** What changed since a bookmark; undefined when that is no longer known, and the whole state is needed instead. */
  changesSince(bookmark: Bookmark): ChangeRange | undefined {
    return this.#history.since(bookmark, this.#revision)
  }

  /** The bookmark is no longer needed. Call it once per bookmark. */
  release(bookmark: Bookmark): void {
    this.#history.remove(bookmark)
  }

  /**
   * Calls the listener after changes, and when the store becomes synced. Updates made in one go are announced once. Returns
   * the function that ends it.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #commit(transaction: Transaction, receivedAtMs: number | undefined): boolean {
    const { services, nodes, serviceCidrs, serviceOfSource } = transaction
    for (const [source, path] of serviceOfSource) {
      if (path === undefined) this.#tables.serviceOfSource.delete(source)
      else this.#tables.serviceOfSource.set(source, path)
    }
    if (services.size + nodes.size + serviceCidrs.size === 0) return false
    apply(this.#tables.entries, services)
    apply(this.#tables.nodes, nodes)
    apply(this.#tables.serviceCidrs, serviceCidrs)
    for (const { before, after } of services.values()) this.#weight += weightOf(after) - weightOf(before)
    this.#snapshot = undefined
    const committedAtMs = performance.timeOrigin + performance.now()
    const maxWeight = this.#maxSupersededEndpoints ?? Math.max(leastSupersededEndpoints, 2 * this.#weight)
    this.#history.record(transaction, { committedAtMs, receivedAtMs }, maxWeight)
    this.#revision++
    return true
  }

  #announce(): void {
    if (this.#announcing) return
    this.#announcing = true
    queueMicrotask(() => {
      this.#announcing = false
      for (const listener of [...this.#listeners]) listener()
    })
  }
}

function apply<T>(table: Map<string, T>, changes: ReadonlyMap<string, Changed<T>>): void {
  for (const [name, { after }] of changes) {
    if (after === undefined) table.delete(name)
    else table.set(name, after)
  }
}
