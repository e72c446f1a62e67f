import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type LiveSample, type LiveSync, type Log, messageOf, silentLog } from '@kpng/api'
import { LiveEvent } from './live-event.js'
import { LiveReader } from './live-reader.js'
import { type LiveSource, LiveState } from './live-state.js'

/** At most five events per second: nobody sees more. */
const eventIntervalMs = 200
/** How long rows are kept after the last reader left: one that comes back gets only what it missed. */
const lingerMs = 60_000
/** A snapshot that is not older than this is sent again, followed by what changed since. */
const snapshotReuseMs = 5000

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
  /** Undefined while it is idle. */
  #state: LiveState | undefined
  /** Ends what tells about changes without a sync. */
  #leave: (() => void) | undefined
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
    this.#state?.noteServices(paths)
    this.#schedule()
  }

  /** The rows of all Services may have changed. */
  noteAll(): void {
    this.#state?.noteAll()
    this.#schedule()
  }

  noteSync(sync: LiveSync): void {
    this.#state?.noteSync(sync)
    this.#schedule()
  }

  /** To be called once per second. */
  pulse(sample: LiveSample): void {
    if (this.#readers.size === 0 || !this.#state) return
    // How far nodes are behind changes with time alone.
    if (this.#source.nodes) this.#schedule()
    const data = `{"status":${this.#state.statusText()},"sample":${JSON.stringify(sample)}}`
    this.#sendToAll(new LiveEvent(this.#id(), 'pulse', data))
  }

  /** Serves a reader until it goes. */
  async open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reader = new LiveReader(request, response)
    clearTimeout(this.#lingering)
    const state = await this.#upToDate()
    const resumed = this.#resumedFrom(request.headers['last-event-id'], state)
    const snapshot = resumed === undefined ? await this.#readySnapshot(reader.isGzip, state) : undefined
    if (reader.isGone) return this.#left(reader)
    if (snapshot) reader.send(snapshot.event)
    const from = resumed ?? snapshot?.number ?? this.#number
    if (resumed !== undefined || from < this.#number) {
      reader.send(new LiveEvent(this.#id(), 'changes', state.changesText(state.since(from))))
    }
    this.#readers.add(reader)
    // Another one may have left meanwhile.
    clearTimeout(this.#lingering)
    reader.onGone(() => this.#left(reader))
    if (state.hasNews) this.#schedule()
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
    this.#leave?.()
    this.#leave = undefined
    this.#state = undefined
    this.#snapshot = undefined
  }

  #schedule(): void {
    if (this.#readers.size === 0 || this.#timer) return
    const waitMs = Math.max(0, this.#lastEventMs + eventIntervalMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#upToDate().catch(() => {})
    }, waitMs)
  }

  /** Makes the rows that are missing or out of date, and tells readers. Work that is under way is waited for first. */
  async #upToDate(): Promise<LiveState> {
    while (this.#working) await this.#working.catch(() => {})
    const state = this.#state ?? this.#begin()
    if (!state.hasNews) return state
    this.#working = this.#work(state).finally(() => {
      this.#working = undefined
    })
    await this.#working
    return state
  }

  #begin(): LiveState {
    this.#number++
    this.#leave = this.#source.onChange?.((services) => (services ? this.noteServices(services) : this.noteAll()))
    this.#state = new LiveState(this.#source, this.#number)
    return this.#state
  }

  async #work(state: LiveState): Promise<void> {
    try {
      await this.#tell(state)
    } catch (error) {
      // Readers come back, and it begins anew.
      this.#log.error('The live page could not be brought up to date', { error: messageOf(error) })
      this.close()
      throw error
    }
  }

  async #tell(state: LiveState): Promise<void> {
    const news = await state.collect()
    if (!news) return
    const number = this.#number + 1
    const hasReaders = this.#readers.size > 0
    const event = hasReaders ? new LiveEvent(this.#id(number), 'changes', state.changesText(news)) : undefined
    await event?.prepare()
    // In one go: a reader that comes in between has either seen all of it or nothing.
    this.#number = number
    state.apply(news, number)
    this.#lastEventMs = performance.now()
    if (event) this.#sendToAll(event)
  }

  /** The number of the event after which a reader goes on; undefined if it needs everything. */
  #resumedFrom(lastEventId: string | string[] | undefined, state: LiveState): number | undefined {
    const [instance, text = ''] = String(lastEventId ?? '').split('.')
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    const isKnown = instance === this.#instance && state.remembers(number) && number <= this.#number
    return isKnown ? number : undefined
  }

  async #readySnapshot(isGzip: boolean, state: LiveState) {
    const known = this.#snapshot
    const isUsable = known && performance.now() - known.madeAtMs < snapshotReuseMs && state.remembers(known.number)
    const snapshot = isUsable
      ? known
      : {
          event: new LiveEvent(this.#id(), 'snapshot', state.snapshotText()),
          number: this.#number,
          madeAtMs: performance.now(),
        }
    this.#snapshot = snapshot
    if (isGzip) await snapshot.event.prepare()
    return snapshot
  }

  #id = (number = this.#number): string => `${this.#instance}.${number}`

  #sendToAll(event: LiveEvent): void {
    for (const reader of [...this.#readers]) reader.send(event)
  }
}
