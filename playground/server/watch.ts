import type { ServerResponse } from 'node:http'
import type { StatusError } from '../status/status.js'
import type { Change, Store } from '../storage/store.js'
import type { Filter } from './filter.js'
import type { Representation } from './representation.js'
import { bookmarkFrame, changeFrame, errorFrame, initialFrame } from './watch-frames.js'

/** A client that does not read would make us keep everything for it; it is cut off at this many unsent events. */
const maximumUnsent = 100_000

/** setTimeout takes no more; a longer wait would end at once. */
const longestTimer = 2 ** 31 - 1

/** Small events are gathered up to this many bytes. */
const writeSize = 64 * 1024

export interface WatchOptions {
  store: Store
  resource: string
  filter: Filter
  form: Representation
  response: ServerResponse
  /** Whether the client gets bookmarks. */
  bookmarks: boolean
}

/** One watch of one client: a queue of events, written as fast as the client reads. Encoding waits until an event is written. */
export class Watch {
  readonly #queue: (() => Buffer | undefined)[] = []
  readonly #timers: NodeJS.Timeout[] = []
  #unsubscribe = () => {}
  #position = 0
  #blocked = false
  #ended = false
  #hung = false
  #scheduled = false
  #sentRevision = 0
  readonly #options: WatchOptions

  constructor(options: WatchOptions) {
    this.#options = options
  }

  start(changes: readonly Change[]): void {
    this.#open()
    for (const change of changes) if (change.resource === this.#options.resource) this.#see(change)
    this.#pump()
  }

  /** First every object there is, then what happens; with `announceEnd` a marked bookmark in between. */
  startWithState(announceEnd: boolean): void {
    this.#open()
    for (const stored of this.#options.store.list(this.#options.resource)) {
      if (this.#options.filter(stored)) this.#queue.push(() => initialFrame(stored, this.#options.form))
    }
    const { revision } = this.#options.store
    if (announceEnd) this.#queue.push(() => bookmarkFrame(revision, this.#options.form, true))
    this.#pump()
  }

  #open(): void {
    this.#options.response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' })
    this.#options.response.flushHeaders()
    this.#options.response.on('drain', () => {
      this.#blocked = false
      this.#pump()
    })
    this.#options.response.on('close', () => this.#stop())
    this.#unsubscribe = this.#options.store.subscribe(this.#options.resource, (change) => {
      this.#see(change)
      this.#pumpSoon()
    })
  }

  /** Changes made in one turn go out together: one write instead of many. */
  #pumpSoon(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#pump()
    })
  }

  /** Ends the watch after its time, as every API server does; zero: in 30 to 60 minutes. */
  schedule(timeoutSeconds: number, bookmarkIntervalMs: number): void {
    const seconds = timeoutSeconds > 0 ? timeoutSeconds : 1800 * (1 + Math.random())
    this.#timers.push(
      setTimeout(
        () => {
          this.bookmark()
          this.end()
        },
        Math.min(seconds * 1000, longestTimer),
      ),
    )
    if (this.#options.bookmarks) this.#timers.push(setInterval(() => this.bookmark(), bookmarkIntervalMs))
    for (const timer of this.#timers) timer.unref()
  }

  #see(change: Change): void {
    this.#queue.push(() => changeFrame(change, this.#options.filter, this.#options.form))
    if (this.#queue.length - this.#position > maximumUnsent) this.drop()
  }

  bookmark(): void {
    const { revision } = this.#options.store
    if (!this.#options.bookmarks || revision === this.#sentRevision) return
    this.#sentRevision = revision
    this.#queue.push(() => bookmarkFrame(revision, this.#options.form, false))
    this.#pump()
  }

  #pump(): void {
    while (!this.#blocked && !this.#hung && !this.#ended && this.#position < this.#queue.length) {
      const frames: Buffer[] = []
      let size = 0
      while (size < writeSize && this.#position < this.#queue.length) {
        const frame = this.#queue[this.#position++]?.()
        if (!frame) continue
        frames.push(frame)
        size += frame.length
      }
      const [only] = frames
      if (only) this.#blocked = !this.#options.response.write(frames.length === 1 ? only : Buffer.concat(frames))
    }
    if (this.#position === this.#queue.length || this.#position > 1024) {
      this.#queue.splice(0, this.#position)
      this.#position = 0
    }
  }

  /** Says why inside the watch, then ends it. */
  fail(error: StatusError): void {
    this.#queue.push(() => errorFrame(error.status))
    this.#pump()
    this.end()
  }

  /** From now on not a byte more, but the connection stays: what a dead network path looks like. */
  hang(): void {
    this.#hung = true
  }

  /** Cuts the connection without a word. */
  drop(): void {
    this.#options.response.socket?.destroy()
    this.#stop()
  }

  end(): void {
    if (!this.#hung) this.#options.response.end()
    this.#stop()
  }

  #stop(): void {
    this.#ended = true
    this.#unsubscribe()
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
