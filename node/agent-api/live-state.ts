import { setImmediate } from 'node:timers/promises'
import type { AgentStatus, LiveNode, LiveSample, LiveService, LiveSync } from '@kpng/api'
import { LiveTable, objectText } from './live-table.js'

/** Where the stream has its rows from. They are asked for only while somebody reads. */
export interface LiveSource {
  status(): AgentStatus
  /** The names of all Services: `namespace/name`. */
  services(): Iterable<string>
  /** Undefined: it is gone. */
  service(path: string): LiveService | undefined
  /** The oldest first. */
  syncs(): readonly LiveSync[]
  /** The oldest first. */
  samples(): readonly LiveSample[]
  /** Services whose rows may change without a change of their own: those that want an address of another one. */
  contested?(): Iterable<string>
  /** Calls the listener with Services whose rows may have changed without a sync; undefined: any. Returns the function that ends it. */
  onChange?(listener: (services: Iterable<string> | undefined) => void): () => void
  /** Of a core. */
  nodes?(): Iterable<LiveNode>
}

/** What is new since an event, as JSON texts; null for what is gone. */
export interface News {
  readonly services: ReadonlyMap<string, string | null>
  readonly nodes: ReadonlyMap<string, string | null>
  readonly syncs: readonly SyncText[]
}

interface SyncText {
  readonly text: string
  /** Of the event that it was sent in; Infinity: not yet. */
  number: number
}

/** How long work may keep everything else waiting. */
const turnMs = 8
/** Of changes and of samples. */
const listed = 300

/** What readers of a stream have: the rows of Services and nodes as JSON texts, the last syncs, and which rows must be made again. */
export class LiveState {
  readonly #source: LiveSource
  readonly #services: LiveTable
  readonly #nodes: LiveTable
  #syncs: SyncText[]
  #dirty: Set<string>
  #contested = new Set<string>()

  /** @param number of the event that holds everything: the first `collect` makes all rows */
  constructor(source: LiveSource, number: number) {
    this.#source = source
    this.#services = new LiveTable(number)
    this.#nodes = new LiveTable(number)
    this.#dirty = new Set([...source.services()].sort())
    this.#syncs = source
      .syncs()
      .slice(-listed)
      .map((sync) => ({ number, text: JSON.stringify(sync) }))
  }

  noteServices(paths: Iterable<string>): void {
    for (const path of paths) this.#dirty.add(path)
  }

  noteAll(): void {
    this.noteServices(this.#services.keys())
    this.noteServices(this.#source.services())
  }

  noteSync(sync: LiveSync): void {
    this.#syncs.push({ number: Number.POSITIVE_INFINITY, text: JSON.stringify(sync) })
    if (this.#syncs.length > listed) this.#syncs.shift()
  }

  /** Whether there may be something that readers do not have yet. */
  get hasNews(): boolean {
    const isUnsent = this.#syncs.at(-1)?.number === Number.POSITIVE_INFINITY
    return isUnsent || this.#dirty.size > 0 || this.#source.nodes !== undefined
  }

  /** Makes the rows that may have changed, in turns. Undefined if nothing differs from what readers have. */
  async collect(): Promise<News | undefined> {
    const dirty = this.#dirty
    this.#dirty = new Set()
    // A Service that is new may have taken an address from another one, and one that is gone may have left it one.
    const contested = new Set(this.#source.contested?.())
    for (const path of [...this.#contested, ...contested]) dirty.add(path)
    this.#contested = contested
    const services = await this.#rowsOf(dirty)
    const nodes = this.#changedNodes()
    const syncs = this.#syncs.filter(({ number }) => number === Number.POSITIVE_INFINITY)
    return services.size + nodes.size + syncs.length === 0 ? undefined : { services, nodes, syncs }
  }

  /** Readers have the news now, with the event of this number. */
  apply({ services, nodes, syncs }: News, number: number): void {
    this.#services.apply(services, number)
    this.#nodes.apply(nodes, number)
    for (const sync of syncs) sync.number = number
  }

  /** Whether it is known what changed since an event. */
  remembers(number: number): boolean {
    return this.#services.remembers(number) && this.#nodes.remembers(number)
  }

  /** What an event later than this one told. */
  since(number: number): News {
    return {
      services: this.#services.changedSince(number),
      nodes: this.#nodes.changedSince(number),
      syncs: this.#syncs.filter((sync) => sync.number > number && sync.number < Number.POSITIVE_INFINITY),
    }
  }

  /** A `LiveChanges` as JSON. */
  changesText({ services, nodes, syncs }: News): string {
    const ofCore = this.#source.nodes ? `,"nodes":${objectText(nodes)}` : ''
    const texts = syncs.map(({ text }) => text).join(',')
    return `{"status":${this.statusText()},"syncs":[${texts}],"services":${objectText(services)}${ofCore}}`
  }

  /** A `LiveSnapshot` as JSON. */
  snapshotText(): string {
    const sent = this.#syncs.filter(({ number }) => number < Number.POSITIVE_INFINITY).map(({ text }) => text)
    const samples = JSON.stringify(this.#source.samples().slice(-listed))
    const ofCore = this.#source.nodes ? `,"nodes":[${this.#nodes.texts()}]` : ''
    return `{"status":${this.statusText()},"services":[${this.#services.texts()}],"changes":[${sent}],"samples":${samples}${ofCore}}`
  }

  statusText(): string {
    return JSON.stringify(this.#source.status())
  }

  async #rowsOf(paths: Iterable<string>): Promise<Map<string, string | null>> {
    const rows = new Map<string, string | null>()
    let endsAtMs = performance.now() + turnMs
    for (const path of paths) {
      const row = this.#source.service(path)
      const text = row ? JSON.stringify(row) : null
      if (text !== this.#services.get(path)) rows.set(path, text)
      if (performance.now() < endsAtMs) continue
      await setImmediate()
      endsAtMs = performance.now() + turnMs
    }
    return rows
  }

  #changedNodes(): Map<string, string | null> {
    const changed = new Map<string, string | null>()
    if (!this.#source.nodes) return changed
    const present = new Set<string>()
    for (const node of this.#source.nodes()) {
      present.add(node.name)
      const text = JSON.stringify(node)
      if (text !== this.#nodes.get(node.name)) changed.set(node.name, text)
    }
    for (const name of this.#nodes.keys()) if (!present.has(name)) changed.set(name, null)
    return changed
  }
}
