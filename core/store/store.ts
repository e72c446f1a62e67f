import { type globalv1, type localv1, servicePath } from '@kpng/api'
import { type Bookmark, type Changed, type ChangeRange, History, weightOf } from './history.js'
import {
  type ClusterState,
  type EndpointSource,
  reuseEndpoints,
  type ServiceEntry,
  sameEntry,
  sameMessage,
} from './records.js'

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

/** The kinds of objects that a source must have read completely before anything is served. */
export type Kind = 'services' | 'endpoints' | 'nodes'

/** What the store holds, by name. Only the store itself changes it, when a transaction is done. */
interface Tables {
  readonly entries: Map<string, ServiceEntry>
  readonly nodes: Map<string, globalv1.Node>
  readonly serviceCidrs: Map<string, localv1.ServiceCIDR>
  /** `namespace/source` → path of the service that the source's endpoints belong to. */
  readonly serviceOfSource: Map<string, string>
}

/**
 * One atomic update. Writes are collected here and reach the store together when the update function returns; when it throws,
 * none does. Writes of what the store holds already are dropped at once.
 */
export class Transaction {
  readonly #tables: Tables
  readonly services = new Map<string, Changed<ServiceEntry>>()
  readonly nodes = new Map<string, Changed<globalv1.Node>>()
  readonly serviceCidrs = new Map<string, Changed<localv1.ServiceCIDR>>()
  readonly serviceOfSource = new Map<string, string | undefined>()
  readonly synced = new Set<Kind>()

  constructor(tables: Tables) {
    this.#tables = tables
  }

  setService(service: localv1.Service): void {
    const path = servicePath(service.namespace, service.name)
    const entry = this.#entry(path)
    if (entry?.service && sameMessage(entry.service, service)) return
    this.#put(path, { ...(entry ?? emptyEntry(path, service.namespace, service.name)), service })
  }

  deleteService(namespace: string, name: string): void {
    const path = servicePath(namespace, name)
    const entry = this.#entry(path)
    if (entry?.service) this.#put(path, { ...entry, service: undefined })
  }

  /** Replaces all endpoints of one source. A source belongs to one service at a time; it may move to another. */
  setEndpoints(source: EndpointSource, triggerUnixMs?: number): void {
    const path = servicePath(source.namespace, source.service)
    const owner = this.#ownerOf(source.namespace, source.name)
    if (owner !== undefined && owner !== path) this.deleteEndpoints(source.namespace, source.name, triggerUnixMs)
    const entry = this.#entry(path) ?? emptyEntry(path, source.namespace, source.service)
    const before = entry.sources.get(source.name)
    const endpoints = reuseEndpoints(before, source.endpoints)
    this.serviceOfSource.set(servicePath(source.namespace, source.name), path)
    if (endpoints === before) return
    this.#put(path, { ...entry, sources: new Map(entry.sources).set(source.name, endpoints) }, triggerUnixMs)
  }

  deleteEndpoints(namespace: string, source: string, triggerUnixMs?: number): void {
    const path = this.#ownerOf(namespace, source)
    const entry = path === undefined ? undefined : this.#entry(path)
    if (path === undefined || !entry) return
    const sources = new Map(entry.sources)
    sources.delete(source)
    this.serviceOfSource.set(servicePath(namespace, source), undefined)
    this.#put(path, { ...entry, sources }, triggerUnixMs)
  }

  setNode(node: globalv1.Node): void {
    setIn(this.nodes, this.#tables.nodes, node.name, node)
  }

  deleteNode(name: string): void {
    setIn(this.nodes, this.#tables.nodes, name, undefined)
  }

  setServiceCidr(cidr: localv1.ServiceCIDR): void {
    setIn(this.serviceCidrs, this.#tables.serviceCidrs, cidr.name, cidr)
  }

  deleteServiceCidr(name: string): void {
    setIn(this.serviceCidrs, this.#tables.serviceCidrs, name, undefined)
  }

  /** Says that everything of a kind has been read once. Nothing is served before all kinds are. */
  setSynced(...kinds: readonly Kind[]): void {
    for (const kind of kinds) this.synced.add(kind)
  }

  /** Makes the store hold exactly this state: only what differs is written, what is not in it is deleted. */
  replaceAll(state: ClusterState): void {
    for (const node of state.nodes) this.setNode(node)
    for (const service of state.services) this.setService(service)
    for (const cidr of state.serviceCidrs) this.setServiceCidr(cidr)
    for (const source of state.endpoints) this.setEndpoints(source)

    const keep = {
      nodes: new Set(state.nodes.map((node) => node.name)),
      services: new Set(state.services.map((service) => servicePath(service.namespace, service.name))),
      serviceCidrs: new Set(state.serviceCidrs.map((cidr) => cidr.name)),
      sources: new Set(state.endpoints.map((source) => servicePath(source.namespace, source.name))),
    }
    for (const name of this.#tables.nodes.keys()) if (!keep.nodes.has(name)) this.deleteNode(name)
    for (const name of this.#tables.serviceCidrs.keys()) if (!keep.serviceCidrs.has(name)) this.deleteServiceCidr(name)
    for (const entry of this.#tables.entries.values()) {
      if (!keep.services.has(entry.path)) this.deleteService(entry.namespace, entry.name)
      for (const source of entry.sources.keys()) {
        if (!keep.sources.has(servicePath(entry.namespace, source))) this.deleteEndpoints(entry.namespace, source)
      }
    }
  }

  /** Drops what was written and then written back, so that it makes no revision. */
  dropUnchanged(): void {
    for (const [path, { before, after }] of this.services) {
      if (before && after && sameEntry(before, after)) this.services.delete(path)
    }
  }

  #ownerOf(namespace: string, source: string): string | undefined {
    const key = servicePath(namespace, source)
    return this.serviceOfSource.has(key) ? this.serviceOfSource.get(key) : this.#tables.serviceOfSource.get(key)
  }

  #entry(path: string): ServiceEntry | undefined {
    const staged = this.services.get(path)
    return staged ? staged.after : this.#tables.entries.get(path)
  }

  #put(path: string, entry: ServiceEntry, triggerUnixMs?: number): void {
    const before = this.#tables.entries.get(path)
    const after = entry.service === undefined && entry.sources.size === 0 ? undefined : Object.freeze(entry)
    const trigger = this.services.get(path)?.triggerUnixMs ?? triggerUnixMs
    if (before === undefined && after === undefined) this.services.delete(path)
    else this.services.set(path, { before, after, triggerUnixMs: trigger })
  }
}

const emptyEntry = (path: string, namespace: string, name: string): ServiceEntry => ({
  path,
  namespace,
  name,
  service: undefined,
  sources: new Map(),
})

function setIn<T>(staged: Map<string, Changed<T>>, stored: Map<string, T>, name: string, after: T | undefined): void {
  const before = stored.get(name)
  if (sameMessage(before, after)) staged.delete(name)
  else staged.set(name, { before, after })
}
