import type { globalv1, localv1 } from '@kpng/api'
import { type Changed, ChangeLog, type ChangeRange } from './change-log.js'
import type { ServiceEntry } from './records.js'
import { type Kind, type Tables, Transaction } from './transaction.js'

export interface StoreOptions {
  /** How many changes are remembered for watchers that lag behind. Default 20,000. */
  readonly maxLoggedChanges?: number
  /**
   * How many endpoints that are no more are remembered with them: one change of a large service may replace thousands.
   * Default 200,000, which are some tens of megabytes.
   */
  readonly maxLoggedEndpoints?: number
}

/**
 * What the cluster is. A source writes it, views read it; neither knows the other.
 *
 * Guarantees: an update is atomic; an update that changes nothing makes no revision; entries are immutable; everything a view
 * needs to work out what changed since a revision is in the log or, when it is not, the view is told so.
 */
export class Store {
  readonly #tables: Tables = {
    entries: new Map(),
    nodes: new Map(),
    serviceCidrs: new Map(),
    serviceOfSource: new Map(),
  }
  readonly #log: ChangeLog
  readonly #awaited = new Set<Kind>(['services', 'endpoints', 'nodes'])
  readonly #listeners = new Set<() => void>()
  #revision = 0
  #updates = 0
  #announcing = false
  #snapshot: readonly ServiceEntry[] | undefined

  constructor({ maxLoggedChanges = 20_000, maxLoggedEndpoints = 200_000 }: StoreOptions = {}) {
    this.#log = new ChangeLog({ maxChanges: maxLoggedChanges, maxEndpoints: maxLoggedEndpoints })
  }

  /** Grows by one with each update that changed something. */
  get revision(): number {
    return this.#revision
  }

  /** Updates asked for, those that changed nothing included: with `revision` this gives the reduction that kpng brings. */
  get updates(): number {
    return this.#updates
  }

  /** Whether the source has read every kind of object completely. Stays true from then on. */
  get synced(): boolean {
    return this.#awaited.size === 0
  }

  /** The kinds that the source has not read completely yet. */
  get awaited(): readonly Kind[] {
    return [...this.#awaited]
  }

  /**
   * Applies all writes of the function, or none when it throws. Returns the revision that holds them.
   * @param receivedAtMs when the source received what it writes (Unix time), for tracing
   */
  update(write: (transaction: Transaction) => void, receivedAtMs?: number): number {
    this.#updates++
    const transaction = new Transaction(this.#tables)
    write(transaction)
    transaction.settle()
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

  /** What changed since a revision; undefined when that is too long ago, and the whole state is needed instead. */
  changesSince(revision: number): ChangeRange | undefined {
    return this.#log.since(revision)
  }

  /**
   * Calls the listener after changes, and when the store becomes synced. Updates made in one go are announced once. Returns
   * the function that ends it.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #commit({ services, nodes, serviceCidrs, serviceOfSource }: Transaction, receivedAtMs: number | undefined): boolean {
    for (const [source, path] of serviceOfSource) {
      if (path === undefined) this.#tables.serviceOfSource.delete(source)
      else this.#tables.serviceOfSource.set(source, path)
    }
    if (services.size + nodes.size + serviceCidrs.size === 0) return false
    apply(this.#tables.entries, services)
    apply(this.#tables.nodes, nodes)
    apply(this.#tables.serviceCidrs, serviceCidrs)
    this.#snapshot = undefined
    const [from, to] = [this.#revision, this.#revision + 1]
    const committedAtMs = performance.timeOrigin + performance.now()
    this.#log.append({ from, to, committedAtMs, receivedAtMs, services, nodes, serviceCidrs })
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
