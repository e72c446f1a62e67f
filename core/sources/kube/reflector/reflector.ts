import { KpngError, type Log } from '@kpng/api'
import { pause, WatchStatus } from '@kpng/client'
import type { KubeConnection } from '../client/index.js'
import { type Failure, judge, NotStreaming, refusesStreaming, SilentWatch, statusErrorIn } from './failure.js'
import { readList } from './list.js'
import { ReflectorLog } from './reflector-log.js'
import type { RequestContext, Resource } from './resource.js'
import { Backoff, defaultTiming, type ReflectorTiming } from './timing.js'
import { endsInitialEvents, isPeriodicBookmark, openWatch, type Watch, type WatchEvent } from './watch.js'

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** What happened to an object. */
export type ObjectEvent =
  /** The object is new, or changed. It is parsed JSON that nobody else holds: keep only what you use of it. */
  | { readonly type: 'set'; readonly object: KubeObject }
  | { readonly type: 'delete'; readonly namespace: string; readonly name: string }
  /** Something came that has no name and so cannot be an object. */
  | { readonly type: 'nameless' }

/** Events that arrived together, in the order in which they happened. */
export interface Batch {
  readonly events: readonly ObjectEvent[]
  /**
   * - `listing`: the events are a part of a list. In the middle of a list the objects are not in a state that ever existed:
   *   endpoints may have left one slice and not come to another yet.
   * - `listed`: the events complete a list: all that exists has been handed over.
   * - `watching`: the events are changes, as they happen.
   */
  readonly state: 'listing' | 'listed' | 'watching'
}

export interface ReflectorOptions {
  readonly connection: KubeConnection
  readonly resource: Resource
  readonly log: Log
  /** Ends the batches. */
  readonly signal: AbortSignal
  /** Called for each object that the server sends, and for each object that a list shows to be gone. */
  readonly onEvent?: (type: EventType) => void
  /** Kept up to date with how the watch is. Default: nobody is told. */
  readonly status?: WatchStatus
  readonly timing?: Partial<ReflectorTiming>
  /** Objects per page, if the server has no streaming lists. Default 500. */
  readonly pageSize?: number
}

/**
 * Everything that exists of one resource of the API server, and then every change, until the signal is aborted. Only what
 * differs from what was handed over before is handed over. Never throws for what a server or a network can do.
 */
export const batches = (options: ReflectorOptions): AsyncGenerator<Batch> => new Reflector(options).batches()

/** After so many broken streaming lists in a row, the list is read in pages. */
const streamingAttempts = 3

/**
 * After so many watches in a row that were accepted and failed without bringing anything, everything is listed again: the server cannot
 * continue from this version, whatever it says.
 */
const fruitlessWatches = 3

/**
 * Lists a resource, watches it, and starts again where that is needed.
 *
 * States:
 * - LISTING: reads everything, as a stream or in pages. Ends in WATCHING.
 * - WATCHING: reads changes as they happen, from the last version on. When the server ends the watch at its time, the next
 *   one begins there; any other end leads to WAITING. A watch counts as connected once it has brought an event or a bookmark, or has lived
 *   for some seconds.
 * - WAITING: something failed; the delay grows with each failure. Ends in WATCHING, or in LISTING if the version is lost or three watches
 *   in a row brought nothing. A list is the most costly request to a server, so there is always a delay before it.
 * - ABSENT: the server does not have (or forbids) the optional resource; looks for it again rarely.
 * - STOPPED: the signal was aborted.
 */
class Reflector {
  readonly #connection: KubeConnection
  readonly #signal: AbortSignal
  readonly #log: ReflectorLog
  readonly #onEvent: (type: EventType) => void
  readonly #status: WatchStatus
  readonly #timing: ReflectorTiming
  readonly #pageSize: number
  readonly #backoff: Backoff
  readonly #known = new KnownObjects()
  #resource: Resource
  /** Up to which version everything has been handed over. Undefined: a list is needed. */
  #version: string | undefined
  /** When the current list began, by the clock of `performance`. Undefined: no list is being read. */
  #listingSince: number | undefined
  /** How fresh the next list in pages must be; see `ListOptions`. */
  #notOlderThan = '0'
  /** Until then, by the clock of `performance`, lists are read in pages. */
  #pagesUntil = 0
  #brokenStreams = 0
  /** When the server accepted the current watch. */
  #openedAt: number | undefined
  /** Whether the current watch has brought something that is not an error. */
  #hasBrought = false
  /** Watches in a row that were accepted, and failed without bringing anything. */
  #fruitless = 0
  #sendsBookmarks = false
  /** The last watch was silent: the next one is not connected before it has brought something. */
  #wasSilent = false

  constructor({ connection, resource, log, signal, onEvent, status, timing, pageSize }: ReflectorOptions) {
    this.#connection = connection
    this.#resource = resource
    this.#signal = signal
    this.#log = new ReflectorLog(log, resource.name)
    this.#onEvent = onEvent ?? (() => {})
    this.#status = status ?? new WatchStatus(resource.name)
    this.#timing = { ...defaultTiming, ...timing }
    this.#pageSize = pageSize ?? 500
    this.#backoff = new Backoff(this.#timing.backoff)
  }

  async *batches(): AsyncGenerator<Batch> {
    while (!this.#signal.aborted) {
      this.#openedAt = undefined
      this.#hasBrought = false
      let failure: Failure | undefined
      let error: unknown
      try {
        yield* this.#listAndWatch()
      } catch (caught) {
        if (this.#signal.aborted) break
        error = caught
        failure = judge(error, this.#resource)
        this.#status.lost()
        this.#status.isAbsent = failure.next === 'absent' || failure.next === 'forbidden'
      }
      failure = this.#countFruitless(failure, error)
      if (failure) this.#log.failed(failure)
      if (failure?.next === 'absent') yield this.#nothingExists()
      // What was known of it stays; nobody should wait for more.
      if (failure?.next === 'forbidden') yield { events: [], state: 'listed' }
      if (!this.#signal.aborted) await this.#prepareNext(failure)
    }
    this.#log.enter('STOPPED')
  }

  get #context(): RequestContext {
    return { connection: this.#connection, resource: this.#resource, timing: this.#timing }
  }

  async *#listAndWatch(): AsyncGenerator<Batch> {
    if (this.#version === undefined) {
      this.#log.enter('LISTING')
      const mayStream = performance.now() >= this.#pagesUntil && this.#brokenStreams < streamingAttempts
      if (mayStream && (yield* this.#listByStream())) return
      yield* this.#listByPages()
    }
    const from = { resourceVersion: this.#version ?? '' }
    const watch = await openWatch(this.#context, from, this.#signal, this.#sendsBookmarks)
    this.#openedAt = performance.now()
    yield* this.#follow(watch)
  }

  async *#follow(watch: Watch): AsyncGenerator<Batch> {
    const lives = this.#wasSilent ? undefined : setTimeout(() => this.#watching(), this.#timing.connectedAfterMs)
    try {
      for await (const events of watch.events) {
        yield* this.#receive(events)
        clearTimeout(lives)
      }
    } finally {
      clearTimeout(lives)
    }
  }

  /**
   * Counts watches that were accepted and brought nothing. One that has lived for some seconds counts as good, unless it was ended because of
   * its silence.
   * @returns the failure, which leads to a list if there were too many
   */
  #countFruitless(failure: Failure | undefined, error: unknown): Failure | undefined {
    const livedMs = performance.now() - (this.#openedAt ?? 0)
    this.#wasSilent = error instanceof SilentWatch
    if (this.#openedAt === undefined || this.#version === undefined) return failure
    if (this.#hasBrought || (livedMs >= this.#timing.connectedAfterMs && !this.#wasSilent)) this.#fruitless = 0
    else {
      this.#fruitless++
      this.#status.lost()
    }
    if (this.#fruitless < fruitlessWatches || (failure && failure.next !== 'resume')) return failure
    this.#fruitless = 0
    const fields = { resource: this.#resource.name }
    const endAtOnce = {
      level: 'warn',
      message: 'The watches of a resource end at once: listing again',
      fields,
    } as const
    return { ...(failure ?? endAtOnce), next: 'relist' }
  }

  /** Returns false if the server has no streaming lists. Otherwise the stream has continued as a watch, to its end. */
  async *#listByStream(): AsyncGenerator<Batch, boolean> {
    this.#startList()
    let quiet: NodeJS.Timeout | undefined
    try {
      const watch = await openWatch(this.#context, 'initial events', this.#signal)
      this.#openedAt = performance.now()
      quiet = setTimeout(() => watch.abort(new NotStreaming()), this.#timing.initialEventsQuietMs)
      for await (const events of watch.events) {
        yield* this.#receive(events)
        if (!this.#isListing) clearTimeout(quiet)
        else if (events.some(({ type }) => type === 'ADDED')) quiet.refresh()
      }
      if (!this.#isListing) return true
      throw new KpngError('unavailable', `The list of ${this.#resource.name} ended before it was complete.`)
    } catch (error) {
      if (!this.#isListing) throw error
      if (!refusesStreaming(error)) {
        if (this.#openedAt !== undefined) this.#brokenStreams++
        throw error
      }
      this.#pagesUntil = performance.now() + this.#timing.streamingRecheckMs
      this.#log.detail(1, 'The server has no streaming lists: reading pages')
      return false
    } finally {
      clearTimeout(quiet)
    }
  }

  async *#listByPages(): AsyncGenerator<Batch> {
    const options = { pageSize: this.#pageSize, notOlderThan: this.#notOlderThan }
    for await (const { isFirst, objects, version } of readList(this.#context, options, this.#signal)) {
      if (isFirst) this.#startList()
      const events = objects.flatMap((object) => this.#set('ADDED', object))
      if (version !== undefined) yield* this.#completeList(events, version, 'pages')
      else if (events.length > 0) yield { events, state: 'listing' }
    }
  }

  /** Turns the events of a watch into batches. What comes before an error is handed over before it is thrown. */
  *#receive(received: readonly WatchEvent[]): Generator<Batch> {
    this.#status.heardAtMs = performance.now()
    const isFirst = !this.#hasBrought
    let events: ObjectEvent[] = []
    let error: KpngError | undefined
    for (const { type, object } of received) {
      error = this.#errorIn(type, object)
      if (error) break
      this.#hasBrought = true
      if (isPeriodicBookmark({ type, object })) this.#sendsBookmarks = true
      if (type === 'ADDED' || type === 'MODIFIED') events.push(...this.#set(type, object))
      else if (type === 'DELETED') events.push(...this.#delete(object))
      else if (type !== 'BOOKMARK') this.#log.detail(1, 'Ignored a watch event of an unknown type', { type })
      else if (this.#isListing) {
        yield* this.#completeList(events, versionOf(object), 'stream')
        this.#watching()
        events = []
      }
      // The initial events of a list come in no order: only the end of the list says up to which version they go.
      if (!this.#isListing) this.#version = versionOf(object) || this.#version
    }
    if (isFirst && this.#hasBrought && !this.#isListing && !error) this.#watching()
    if (events.length > 0) yield { events, state: this.#isListing ? 'listing' : 'watching' }
    if (error) throw error
  }

  #watching(): void {
    this.#log.watching(this.#version)
    this.#status.connected()
  }

  #errorIn(type: string, object: unknown): KpngError | undefined {
    if (type === 'ERROR') return statusErrorIn(`continue the watch of ${this.#resource.name}`, object)
    // A server that has streaming lists sends no other bookmark before the one that ends the list.
    if (type === 'BOOKMARK' && this.#isListing && !endsInitialEvents(object)) return new NotStreaming()
    return undefined
  }

  #set(type: EventType, value: unknown): ObjectEvent[] {
    if (!isKubeObject(value)) return [{ type: 'nameless' }]
    this.#onEvent(type)
    return this.#known.set(keyOf(value), versionOf(value)) ? [{ type: 'set', object: value }] : []
  }

  #delete(value: unknown): ObjectEvent[] {
    if (!isKubeObject(value)) return [{ type: 'nameless' }]
    this.#onEvent('DELETED')
    const key = keyOf(value)
    return this.#known.delete(key) ? [{ type: 'delete', ...splitKey(key) }] : []
  }

  get #isListing(): boolean {
    return this.#listingSince !== undefined
  }

  /** A complete list begins. What an earlier, broken list brought is true and stays; only its end did not come. */
  #startList(): void {
    this.#listingSince = performance.now()
    this.#known.startList()
  }

  *#completeList(events: readonly ObjectEvent[], version: string, by: 'stream' | 'pages'): Generator<Batch> {
    const tookMs = performance.now() - (this.#listingSince ?? 0)
    this.#version = version
    this.#brokenStreams = 0
    yield { events: [...events, ...this.#endList()], state: 'listed' }
    this.#log.listed(this.#known.size, by, tookMs)
  }

  /** The deletions of the objects that the list did not have. */
  #endList(): ObjectEvent[] {
    this.#listingSince = undefined
    return this.#known.endList().map((key) => {
      this.#onEvent('DELETED')
      return { type: 'delete', ...splitKey(key) }
    })
  }

  #nothingExists(): Batch {
    this.#startList()
    return { events: this.#endList(), state: 'listed' }
  }

  /** Decides how to continue after a watch has ended or something failed, and waits as long as needed. */
  async #prepareNext(failure: Failure | undefined): Promise<void> {
    const livedMs = this.#openedAt === undefined ? 0 : performance.now() - this.#openedAt
    const next = failure?.next
    if (next === 'without field selector') {
      const { fieldSelector: _, ...resource } = this.#resource
      this.#resource = resource
      return
    }
    if (next === 'absent' || next === 'forbidden') {
      this.#notOlderThan = this.#version ?? this.#notOlderThan
      this.#version = undefined
      this.#log.enter('ABSENT')
      return pause(this.#backoff.jittered(this.#timing.absentRecheckMs), this.#signal)
    }
    if (next === 'relist' || next === 'start over') {
      // If the server does not even have that version, or could not list at it, only etcd knows what exists.
      this.#notOlderThan = next === 'relist' ? (this.#version ?? '') : ''
      this.#version = undefined
      if (next === 'start over') this.#known.forgetVersions()
    }
    if (failure === undefined && livedMs >= this.#timing.shortWatchMs) return
    const askedMs = Math.min(failure?.retryAfterMs ?? 0, this.#timing.maxRetryAfterMs)
    const waitMs = Math.max(this.#backoff.next(livedMs), askedMs)
    this.#log.enter('WAITING', { seconds: Math.round(waitMs) / 1000 })
    await pause(waitMs, this.#signal)
  }
}

/** What every object has, whatever its kind. */
export interface KubeObject {
  readonly metadata: { readonly name: string; readonly namespace?: unknown; readonly resourceVersion?: unknown }
}

export function isKubeObject(value: unknown): value is KubeObject {
  const metadata = (value as { metadata?: { name?: unknown } | null } | null | undefined)?.metadata
  return typeof metadata?.name === 'string' && metadata.name !== ''
}

/** Empty for an object without a namespace. */
export const namespaceOf = ({ metadata: { namespace } }: KubeObject): string =>
  typeof namespace === 'string' ? namespace : ''

/** The resourceVersion of any object; empty if it has none. */
export function versionOf(object: unknown): string {
  const version = (object as { metadata?: { resourceVersion?: unknown } | null } | null)?.metadata?.resourceVersion
  return typeof version === 'string' ? version : ''
}

/** `namespace/name` */
export const keyOf = (object: KubeObject): string => `${namespaceOf(object)}/${object.metadata.name}`

export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/**
 * Which objects have been handed on, and in which version. A list after a lost watch is compared with them: an object in its
 * known version has not changed, and a known object that is not in the list is gone.
 */
export class KnownObjects {
  readonly #versions = new Map<string, string>()
  #unlisted: Set<string> | undefined

  get size(): number {
    return this.#versions.size
  }

  /** A complete list begins, perhaps not for the first time: the objects that it does not name by its end are gone. */
  startList(): void {
    this.#unlisted = new Set(this.#versions.keys())
  }

  /** The list is complete. Returns the keys of the objects that are gone. */
  endList(): readonly string[] {
    const gone = [...(this.#unlisted ?? [])]
    this.#unlisted = undefined
    for (const key of gone) this.#versions.delete(key)
    return gone
  }

  /** Notes an object. Returns whether this version of it is new. */
  set(key: string, resourceVersion: string): boolean {
    this.#unlisted?.delete(key)
    // Without a version there is nothing to compare by.
    if (resourceVersion !== '' && this.#versions.get(key) === resourceVersion) return false
    this.#versions.set(key, resourceVersion)
    return true
  }

  /** Keeps the objects and forgets their versions, so that each object that comes next counts as new. */
  forgetVersions(): void {
    for (const key of this.#versions.keys()) this.#versions.set(key, '')
  }

  /** Returns whether the object was known. */
  delete(key: string): boolean {
    this.#unlisted?.delete(key)
    return this.#versions.delete(key)
  }
}
