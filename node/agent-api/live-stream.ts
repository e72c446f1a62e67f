import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import {
  type AgentStatus,
  type LiveNode,
  type LiveSample,
  type LiveService,
  type LiveSync,
  type Log,
  messageOf,
  silentLog,
} from '@kpng/api'
import { LiveEvent } from './live-event.js'
import { LiveReader } from './live-reader.js'
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
  /** Of a core. */
  nodes?(): Iterable<LiveNode>
}

/** At most five events per second: nobody sees more. */
const eventIntervalMs = 200
/** How long rows are kept after the last reader left: one that comes back gets only what it missed. */
const lingerMs = 60_000
/** How long work may keep everything else waiting. */
const turnMs = 8
/** A snapshot that is not older than this is sent again, followed by what changed since. */
const snapshotReuseMs = 5000
/** Of changes and of samples. */
const listed = 300

/**
 * The live stream of one agent: see api/live.ts. States: *idle*, nobody reads, and nothing is kept; *making* the rows of all Services for
 * the first reader, in turns; *live*: rows are made again as they change; *lingering*: nobody reads, and the names of changed Services are
 * kept for a minute. All readers get the same bytes.
 */
export class LiveStream {
  readonly #source: LiveSource
  readonly #log: Log
  readonly #onIdle: () => void
  readonly #instance = randomBytes(6).toString('base64url')
  readonly #readers = new Set<LiveReader>()
  /** Of the last event. */
  #number = 0
  #services: LiveTable | undefined
  #nodes = new LiveTable(0)
  /** Services whose rows must be made again. */
  #dirty = new Set<string>()
  #contested = new Set<string>()
  /** The newest syncs, with the number of the event that they were sent in; Infinity: not yet. */
  #syncs: { number: number; readonly text: string }[] = []
  #snapshot: { readonly event: LiveEvent; readonly number: number; readonly madeAtMs: number } | undefined
  #working: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined
  #lastEventMs = Number.NEGATIVE_INFINITY

  /** @param onIdle called when the last reader left a minute ago */
  constructor(source: LiveSource, log: Log = silentLog, onIdle: () => void = () => {}) {
    this.#source = source
    this.#log = log
    this.#onIdle = onIdle
  }

  get readers(): number {
    return this.#readers.size
  }

  /** The rows of these Services may have changed. */
  noteServices(paths: Iterable<string>): void {
    if (!this.#services) return
    for (const path of paths) this.#dirty.add(path)
    this.#schedule()
  }

  /** The rows of all Services may have changed. */
  noteAll(): void {
    if (!this.#services) return
    this.noteServices(this.#services.keys())
    this.noteServices(this.#source.services())
  }

  noteSync(sync: LiveSync): void {
    if (!this.#services) return
    this.#syncs.push({ number: Number.POSITIVE_INFINITY, text: JSON.stringify(sync) })
    if (this.#syncs.length > listed) this.#syncs.shift()
    this.#schedule()
  }

  /** To be called once per second. */
  pulse(sample: LiveSample): void {
    if (this.#readers.size === 0) return
    if (this.#source.nodes) this.#schedule()
    const data = `{"status":${this.#status()},"sample":${JSON.stringify(sample)}}`
    this.#sendToAll(new LiveEvent(this.#id(), 'pulse', data))
  }

  /** Serves a reader until it goes. */
  async open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reader = new LiveReader(request, response)
    clearTimeout(this.#lingering)
    await this.#upToDate()
    const resumed = this.#resumedFrom(request.headers['last-event-id'])
    const snapshot = resumed === undefined ? await this.#readySnapshot(reader.isGzip) : undefined
    if (reader.isGone) return this.#left(reader)
    if (snapshot) reader.send(snapshot.event)
    const from = resumed ?? snapshot?.number ?? this.#number
    if (resumed !== undefined || from < this.#number) reader.send(this.#changesSince(from))
    this.#readers.add(reader)
    // Another one may have left meanwhile.
    clearTimeout(this.#lingering)
    reader.onGone(() => this.#left(reader))
    if (this.#hasNews()) this.#schedule()
  }

  /** Ends all readers. */
  close(): void {
    for (const reader of this.#readers) reader.end()
    this.#forget()
  }

  #left(reader: LiveReader): void {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    clearTimeout(this.#lingering)
    const idle = () => {
      this.#forget()
      this.#onIdle()
    }
    this.#lingering = setTimeout(idle, lingerMs).unref()
  }

  #forget(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#lingering)
    this.#timer = undefined
    this.#services = undefined
    this.#snapshot = undefined
    this.#syncs = []
    this.#dirty = new Set()
  }

  #schedule(): void {
    if (this.#readers.size === 0 || this.#timer) return
    const waitMs = Math.max(0, this.#lastEventMs + eventIntervalMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#upToDate().catch(() => {})
    }, waitMs)
  }

  /** Makes the rows that are missing or out of date. Work that is under way is waited for first. */
  async #upToDate(): Promise<void> {
    while (this.#working) await this.#working.catch(() => {})
    if (this.#services && !this.#hasNews()) return
    this.#working = this.#work().finally(() => {
      this.#working = undefined
    })
    await this.#working
  }

  async #work(): Promise<void> {
    try {
      await (this.#services ? this.#flush(this.#services) : this.#begin())
    } catch (error) {
      // Readers come back, and it begins anew.
      this.#log.error('The live page could not be brought up to date', { error: messageOf(error) })
      this.close()
      throw error
    }
  }

  #hasNews(): boolean {
    return (
      this.#dirty.size > 0 ||
      this.#syncs.at(-1)?.number === Number.POSITIVE_INFINITY ||
      this.#source.nodes !== undefined
    )
  }

  async #begin(): Promise<void> {
    this.#number++
    const services = new LiveTable(this.#number)
    this.#services = services
    this.#nodes = new LiveTable(this.#number)
    this.#syncs = this.#source
      .syncs()
      .slice(-listed)
      .map((sync) => ({ number: this.#number, text: JSON.stringify(sync) }))
    const names = [...this.#source.services()].sort()
    this.#contested = new Set(this.#source.contested?.())
    services.apply(await this.#rowsOf(names, services), this.#number)
    this.#nodes.apply(this.#changedNodes(), this.#number)
  }

  async #flush(services: LiveTable): Promise<void> {
    const dirty = this.#dirty
    this.#dirty = new Set()
    // A Service that is new may have taken an address from another one, and one that is gone may have left it one.
    const contested = new Set(this.#source.contested?.())
    for (const path of [...this.#contested, ...contested]) dirty.add(path)
    this.#contested = contested
    const rows = await this.#rowsOf(dirty, services)
    const nodes = this.#changedNodes()
    const syncs = this.#syncs.filter(({ number }) => number === Number.POSITIVE_INFINITY)
    if (rows.size + nodes.size + syncs.length === 0) return
    const number = this.#number + 1
    const event = this.#readers.size > 0 ? this.#changes(number, syncs, rows, nodes) : undefined
    await event?.prepare()
    // In one go: a reader that comes in between has either seen all of it or nothing.
    this.#number = number
    services.apply(rows, number)
    this.#nodes.apply(nodes, number)
    for (const sync of syncs) sync.number = number
    this.#lastEventMs = performance.now()
    if (event) this.#sendToAll(event)
  }

  /** The rows that differ from what readers have; null for those that are gone. */
  async #rowsOf(paths: Iterable<string>, known: LiveTable): Promise<Map<string, string | null>> {
    const rows = new Map<string, string | null>()
    let endsAtMs = performance.now() + turnMs
    for (const path of paths) {
      const row = this.#source.service(path)
      const text = row ? JSON.stringify(row) : null
      if (text !== known.get(path)) rows.set(path, text)
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

  /** The number of the event after which a reader goes on; undefined if it needs everything. */
  #resumedFrom(lastEventId: string | string[] | undefined): number | undefined {
    const [instance, text = ''] = String(lastEventId ?? '').split('.')
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    const isKnown = instance === this.#instance && this.#services?.remembers(number) && this.#nodes.remembers(number)
    return isKnown && number <= this.#number ? number : undefined
  }

  #changesSince(number: number): LiveEvent {
    const syncs = this.#syncs.filter((sync) => sync.number > number && sync.number <= this.#number)
    const services = this.#services?.changedSince(number) ?? new Map()
    return this.#changes(this.#number, syncs, services, this.#nodes.changedSince(number))
  }

  #changes(
    number: number,
    syncs: readonly { readonly text: string }[],
    services: ReadonlyMap<string, string | null>,
    nodes: ReadonlyMap<string, string | null>,
  ): LiveEvent {
    const ofCore = this.#source.nodes ? `,"nodes":${objectText(nodes)}` : ''
    const texts = syncs.map(({ text }) => text).join(',')
    const data = `{"status":${this.#status()},"syncs":[${texts}],"services":${objectText(services)}${ofCore}}`
    return new LiveEvent(this.#id(number), 'changes', data)
  }

  async #readySnapshot(isGzip: boolean) {
    const known = this.#snapshot
    const isUsable =
      known && performance.now() - known.madeAtMs < snapshotReuseMs && this.#services?.remembers(known.number)
    const snapshot = isUsable ? known : this.#makeSnapshot()
    this.#snapshot = snapshot
    if (isGzip) await snapshot.event.prepare()
    return snapshot
  }

  #makeSnapshot() {
    const sent = this.#syncs.filter(({ number }) => number <= this.#number).map(({ text }) => text)
    const samples = JSON.stringify(this.#source.samples().slice(-listed))
    const ofCore = this.#source.nodes ? `,"nodes":[${this.#nodes.texts()}]` : ''
    const data = `{"status":${this.#status()},"services":[${this.#services?.texts() ?? ''}],"changes":[${sent}],"samples":${samples}${ofCore}}`
    const event = new LiveEvent(this.#id(), 'snapshot', data)
    return { event, number: this.#number, madeAtMs: performance.now() }
  }

  #status = (): string => JSON.stringify(this.#source.status())

  #id = (number = this.#number): string => `${this.#instance}.${number}`

  #sendToAll(event: LiveEvent): void {
    for (const reader of [...this.#readers]) reader.send(event)
  }
}
