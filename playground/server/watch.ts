import type { ServerResponse } from 'node:http'
import { resourceOf } from '../kinds/kind.js'
import type { Change, Store } from '../storage/store.js'
import type { Filter } from './filter.js'
import { versionOf } from './list.js'
import type { Representation } from './representation.js'
import type { Route } from './route.js'
import { expired, invalid, type StatusError, tooLargeResourceVersion } from './status.js'
import { bookmarkFrame, changeFrame, errorFrame, initialFrame } from './watch-frames.js'

/** How a server treats `sendInitialEvents`: as one that has it, refuses it (1.27 and later with it switched off), or does not know it. */
export type StreamingLists = 'supported' | 'refused' | 'ignored'

export interface WatchSettings {
  streamingLists: StreamingLists
  bookmarks: boolean
  bookmarkIntervalMs: number
  /** A watch that starts at an expired version: an ERROR event in a 200 answer, as real servers do, or a 410 answer. */
  expiredWatch: 'event' | 'status'
}

/** A client that does not read would make us keep everything for it; it is cut off at this many unsent events. */
const maximumUnsent = 100_000

/** Small events are gathered up to this many bytes. */
const writeSize = 64 * 1024

/** Opens a watch, or throws why not. */
export function openWatch(
  store: Store,
  route: Route,
  query: URLSearchParams,
  filter: Filter,
  form: Representation,
  response: ServerResponse,
  settings: WatchSettings,
): Watch {
  const version = versionOf(query.get('resourceVersion'))
  const streaming = streamsInitialEvents(query, settings.streamingLists)
  if (version !== undefined && version > store.revision) throw tooLargeResourceVersion(version, store.revision)
  const bookmarks = settings.bookmarks && query.get('allowWatchBookmarks') === 'true'
  const watch = new Watch(store, resourceOf(route.kind), filter, form, response, bookmarks)
  const old = version !== undefined && version > 0 && version < store.compactedRevision
  const initial = streaming === true || (streaming === undefined && (version === undefined || version === 0))
  if (old && !initial) {
    const error = expired(`too old resource version: ${version} (${store.compactedRevision})`)
    if (settings.expiredWatch === 'status') throw error
    watch.start([])
    watch.fail(error)
    return watch
  }
  if (initial) watch.startWithState(streaming === true)
  else watch.start(store.since(version ?? store.revision))
  watch.schedule(Number(query.get('timeoutSeconds') ?? 0), settings.bookmarkIntervalMs)
  return watch
}

/** True: yes; false: explicitly not; undefined: the client (or this server) does not know the parameter. */
function streamsInitialEvents(query: URLSearchParams, mode: StreamingLists): boolean | undefined {
  const asked = query.get('sendInitialEvents')
  if (asked === null || mode === 'ignored') return undefined
  const refuse = (field: string, message: string): StatusError =>
    invalid('meta.k8s.io', 'ListOptions', '', [
      { reason: 'FieldValueForbidden', field, message: `Forbidden: ${message}` },
    ])
  if (mode === 'refused') {
    throw refuse(
      'sendInitialEvents',
      'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
    )
  }
  const match = query.get('resourceVersionMatch')
  if (match !== 'NotOlderThan') {
    throw refuse('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
  }
  if (asked === 'true' && query.get('allowWatchBookmarks') !== 'true') {
    throw refuse('allowWatchBookmarks', 'sendInitialEvents requires setting allowWatchBookmarks to true')
  }
  return asked === 'true'
}

/** One watch of one client: a queue of events, written as fast as the client reads. Encoding waits until an event is written. */
export class Watch {
  private readonly queue: (() => Buffer | undefined)[] = []
  private readonly timers: NodeJS.Timeout[] = []
  private unsubscribe = () => {}
  private position = 0
  private blocked = false
  private ended = false
  private hung = false
  private scheduled = false
  private sentRevision = 0

  constructor(
    private readonly store: Store,
    private readonly resource: string,
    private readonly filter: Filter,
    private readonly form: Representation,
    private readonly response: ServerResponse,
    private readonly bookmarks: boolean,
  ) {}

  start(changes: readonly Change[]): void {
    this.open()
    for (const change of changes) if (change.resource === this.resource) this.see(change)
    this.pump()
  }

  /** First every object there is, then what happens; with `announceEnd` a marked bookmark in between. */
  startWithState(announceEnd: boolean): void {
    this.open()
    for (const stored of this.store.list(this.resource)) {
      if (this.filter(stored)) this.queue.push(() => initialFrame(stored, this.form))
    }
    const { revision } = this.store
    if (announceEnd) this.queue.push(() => bookmarkFrame(revision, this.form, true))
    this.pump()
  }

  private open(): void {
    this.response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' })
    this.response.flushHeaders()
    this.response.on('drain', () => {
      this.blocked = false
      this.pump()
    })
    this.response.on('close', () => this.stop())
    this.unsubscribe = this.store.subscribe(this.resource, (change) => {
      this.see(change)
      this.pumpSoon()
    })
  }

  /** Changes made in one turn go out together: one write instead of many. */
  private pumpSoon(): void {
    if (this.scheduled) return
    this.scheduled = true
    process.nextTick(() => {
      this.scheduled = false
      this.pump()
    })
  }

  /** Ends the watch after its time, as every API server does; zero: in 30 to 60 minutes. */
  schedule(timeoutSeconds: number, bookmarkIntervalMs: number): void {
    const seconds = timeoutSeconds > 0 ? timeoutSeconds : 1800 * (1 + Math.random())
    this.timers.push(
      setTimeout(() => {
        this.bookmark()
        this.end()
      }, seconds * 1000),
    )
    if (this.bookmarks) this.timers.push(setInterval(() => this.bookmark(), bookmarkIntervalMs))
    for (const timer of this.timers) timer.unref()
  }

  private see(change: Change): void {
    this.queue.push(() => changeFrame(change, this.filter, this.form))
    if (this.queue.length - this.position > maximumUnsent) this.drop()
  }

  bookmark(): void {
    const { revision } = this.store
    if (!this.bookmarks || revision === this.sentRevision) return
    this.sentRevision = revision
    this.queue.push(() => bookmarkFrame(revision, this.form, false))
    this.pump()
  }

  private pump(): void {
    while (!this.blocked && !this.hung && !this.ended && this.position < this.queue.length) {
      const frames: Buffer[] = []
      let size = 0
      while (size < writeSize && this.position < this.queue.length) {
        const frame = this.queue[this.position++]?.()
        if (!frame) continue
        frames.push(frame)
        size += frame.length
      }
      const [only] = frames
      if (only) this.blocked = !this.response.write(frames.length === 1 ? only : Buffer.concat(frames))
    }
    if (this.position === this.queue.length || this.position > 1024) {
      this.queue.splice(0, this.position)
      this.position = 0
    }
  }

  /** Says why inside the watch, then ends it. */
  fail(error: StatusError): void {
    this.queue.push(() => errorFrame(error.status))
    this.pump()
    this.end()
  }

  /** From now on not a byte more, but the connection stays: what a dead network path looks like. */
  hang(): void {
    this.hung = true
  }

  /** Cuts the connection without a word. */
  drop(): void {
    this.response.socket?.destroy()
    this.stop()
  }

  end(): void {
    if (!this.hung) this.response.end()
    this.stop()
  }

  private stop(): void {
    this.ended = true
    this.unsubscribe()
    for (const timer of this.timers) clearTimeout(timer)
  }
}
