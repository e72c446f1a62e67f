import { KpngError, type Log } from '@kpng/api'
import { pause } from '@kpng/client'
import type { KubeConnection } from '../credentials/index.js'
import { Backoff } from './backoff.js'
import { type Failure, judge, refusesStreaming } from './failure.js'
import { KnownObjects } from './known-objects.js'
import { ObjectFlow } from './object-flow.js'
import { readPages } from './pages.js'
import { ReflectorLog } from './reflector-log.js'
import { linkedController, type RequestContext } from './requests.js'
import type { EventType, ObjectHandler, Resource } from './resource.js'
import { statusErrorIn } from './status-error.js'
import { defaultTiming, type ReflectorTiming } from './timing.js'
import { endsInitialEvents, readWatch, versionIn, type WatchEvent } from './watch.js'

export interface ReflectorOptions {
  readonly connection: KubeConnection
  readonly resource: Resource
  readonly handler: ObjectHandler
  readonly log: Log
  /** Called for each object that the server sends, and for each found gone by a list. */
  readonly onEvent?: (type: EventType) => void
  readonly timing?: Partial<ReflectorTiming>
  /** Objects a page, where the server has no streaming lists. Default 500. */
  readonly pageSize?: number
}

/** Streaming lists that broke off in a row before one is read in pages. */
const streamingAttempts = 3

/**
 * Keeps a handler up to date with one resource of the API server: lists it, watches it, and starts over where that is needed.
 *
 * States:
 * - LISTING: everything is read, as a stream or in pages. Ends in WATCHING.
 * - WATCHING: changes are read as they happen, from the last version on. When the server ends the watch in its time the next
 *   one begins there; anything else ends in WAITING.
 * - WAITING: something failed; the wait grows with each failure. Ends in WATCHING, or in LISTING where the version is lost
 *   (a list is the most costly thing to ask of a server, so none is asked for without a wait).
 * - ABSENT: the server does not have (or give) the optional resource; it is looked for again rarely.
 * - STOPPED: the signal was aborted.
 */
export class Reflector {
  readonly #connection: KubeConnection
  readonly #handler: ObjectHandler
  readonly #log: ReflectorLog
  readonly #timing: ReflectorTiming
  readonly #pageSize: number
  readonly #backoff: Backoff
  readonly #flow: ObjectFlow
  #resource: Resource
  /** Up to which version everything has been handed on; undefined: a list is needed. */
  #version: string | undefined
  /** What the next list in pages must not be older than; see `PagesOptions`. */
  #notOlderThan = '0'
  /** By the clock of `performance`: until then lists are read in pages. */
  #pagesUntil = 0
  #brokenStreams = 0
  #openedAt: number | undefined

  constructor(options: ReflectorOptions) {
    this.#connection = options.connection
    this.#resource = options.resource
    this.#handler = options.handler
    this.#log = new ReflectorLog(options.log, options.resource.name)
    this.#timing = { ...defaultTiming, ...options.timing }
    this.#pageSize = options.pageSize ?? 500
    this.#backoff = new Backoff(this.#timing.backoff)
    this.#flow = new ObjectFlow(new KnownObjects(), options.handler, options.onEvent ?? (() => {}))
  }

  /** Runs until the signal is aborted. Never rejects for what a server or a network can do. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#openedAt = undefined
      let failure: Failure | undefined
      try {
        await this.#round(signal)
      } catch (error) {
        if (signal.aborted) break
        failure = judge(error, this.#resource)
      }
      if (!signal.aborted) await this.#settle(failure, signal)
    }
    this.#log.enter('STOPPED')
  }

  get #context(): RequestContext {
    return { connection: this.#connection, resource: this.#resource, timing: this.#timing }
  }

  async #round(signal: AbortSignal): Promise<void> {
    if (this.#version === undefined) {
      this.#log.enter('LISTING')
      const stream = performance.now() >= this.#pagesUntil && this.#brokenStreams < streamingAttempts
      if (stream && (await this.#listByStream(signal))) return
      await this.#listByPages(signal)
    }
    await this.#watch(this.#version ?? '', signal)
  }

  /** Returns false where the server has no streaming lists. Otherwise the stream has gone on as a watch, to its end. */
  async #listByStream(signal: AbortSignal): Promise<boolean> {
    const startedAt = performance.now()
    const { controller, unlink } = linkedController(signal)
    const ignored = new KpngError('unsupported', 'The server does not say where the initial events end.')
    let quiet: NodeJS.Timeout | undefined
    const receiver = {
      opened: () => {
        this.#openedAt = performance.now()
        quiet = setTimeout(() => controller.abort(ignored), this.#timing.initialEventsQuietMs)
      },
      event: (event: WatchEvent) => {
        if (!this.#flow.listing || event.type === 'ERROR') return this.#receive(event)
        // A server that has streaming lists sends no other bookmark before the one that ends the list.
        if (event.type === 'BOOKMARK' && !endsInitialEvents(event.object)) throw ignored
        if (event.type === 'ADDED') quiet?.refresh()
        if (event.type !== 'BOOKMARK') return this.#receive(event)
        clearTimeout(quiet)
        this.#listed(versionIn(event.object) ?? '', 'stream', startedAt)
        this.#log.watching(this.#version)
      },
      endBatch: () => this.#flow.endBatch(),
    }
    this.#flow.startList()
    try {
      await readWatch(this.#context, 'initial events', receiver, controller.signal)
      if (!this.#flow.listing) return true
      throw new KpngError('unavailable', `The list of ${this.#resource.name} ended before it was complete.`)
    } catch (error) {
      if (!this.#flow.listing) throw error
      if (error !== ignored && !refusesStreaming(error)) {
        if (this.#openedAt !== undefined) this.#brokenStreams++
        throw error
      }
      this.#pagesUntil = performance.now() + this.#timing.streamingRecheckMs
      this.#log.detail(1, 'The server has no streaming lists: reading pages')
      return false
    } finally {
      clearTimeout(quiet)
      unlink()
    }
  }

  async #listByPages(signal: AbortSignal): Promise<void> {
    const startedAt = performance.now()
    const receiver = {
      start: () => this.#flow.startList(),
      object: (value: unknown) => this.#flow.set('ADDED', value),
      endBatch: () => this.#flow.endBatch(),
    }
    const options = { pageSize: this.#pageSize, notOlderThan: this.#notOlderThan }
    const version = await readPages(this.#context, receiver, signal, options)
    this.#listed(version, 'pages', startedAt)
  }

  #listed(version: string, by: 'stream' | 'pages', startedAt: number): void {
    this.#version = version
    this.#brokenStreams = 0
    this.#log.listed(this.#flow.completeList(), by, performance.now() - startedAt)
  }

  #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const receiver = {
      opened: () => {
        this.#openedAt = performance.now()
        this.#log.watching(resourceVersion)
      },
      event: (event: WatchEvent) => this.#receive(event),
      endBatch: () => this.#flow.endBatch(),
    }
    return readWatch(this.#context, { resourceVersion }, receiver, signal)
  }

  #receive({ type, object }: WatchEvent): void {
    if (type === 'ERROR') throw statusErrorIn(`go on with the watch of ${this.#resource.name}`, object)
    if (type === 'ADDED' || type === 'MODIFIED') this.#flow.set(type, object)
    else if (type === 'DELETED') this.#flow.delete(object)
    else if (type !== 'BOOKMARK') this.#log.detail(1, 'An unknown kind of watch event was left out', { type })
    // The initial events of a list come in no order: only the list's end says up to where we have come.
    if (!this.#flow.listing) this.#version = versionIn(object) ?? this.#version
  }

  /** Decides how to go on after a round, and waits as long as that takes. */
  async #settle(failure: Failure | undefined, signal: AbortSignal): Promise<void> {
    const livedMs = this.#openedAt === undefined ? 0 : performance.now() - this.#openedAt
    if (failure) this.#log.failed(failure)
    const next = failure?.next
    if (next === 'without field selector') {
      const { fieldSelector: _, ...resource } = this.#resource
      this.#resource = resource
      return
    }
    if (next === 'absent' || next === 'rarely') return this.#goWithout(next, signal)
    if (next === 'relist' || next === 'start over') this.#loseVersion(next)
    if (failure === undefined && livedMs >= this.#timing.shortWatchMs) return
    const askedMs = Math.min(failure?.retryAfterMs ?? 0, this.#timing.maxRetryAfterMs)
    const waitMs = Math.max(this.#backoff.next(livedMs), askedMs)
    this.#log.enter('WAITING', { seconds: Math.round(waitMs) / 1000 })
    await pause(waitMs, signal)
  }

  #loseVersion(next: 'relist' | 'start over'): void {
    // Where the server does not even have that version, or could not list at it, only etcd knows what there is.
    this.#notOlderThan = next === 'relist' ? (this.#version ?? '') : ''
    this.#version = undefined
    if (next === 'start over') this.#flow.forgetVersions()
  }

  #goWithout(next: 'absent' | 'rarely', signal: AbortSignal): Promise<void> {
    this.#notOlderThan = this.#version ?? this.#notOlderThan
    this.#version = undefined
    if (next === 'absent') {
      this.#flow.startList()
      this.#flow.completeList()
    } else {
      this.#handler.flush(true)
    }
    this.#log.enter('ABSENT')
    return pause(this.#backoff.jittered(this.#timing.absentRecheckMs), signal)
  }
}
