import type { WatchSettings } from './server/open-watch.js'
import type { Watch } from './server/watch.js'
import { StatusError } from './status/status.js'
import type { Store } from './storage/store.js'

export interface FailureOptions {
  /** The HTTP status. Default 500. */
  code?: number
  /** Seconds in `Retry-After`; for 429 and 503. Default: none, for 429 it is 1. */
  retryAfterSeconds?: number
  /** Only requests whose method and path match, like /^GET .*services/. Default: all of the API. */
  match?: RegExp
}

export interface DelayOptions {
  /** Only requests whose method and path match. Default: all of the API. */
  match?: RegExp
}

interface Failure extends FailureOptions {
  left: number
  fraction: number
}

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'list',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** `services is forbidden: User "…" cannot list resource "services" in API group "" at the cluster scope`. */
function deniedMessage(method: string, url: URL): string {
  const parts = url.pathname.split('/').filter(Boolean)
  const group = parts[0] === 'apis' ? (parts[1] ?? '') : ''
  const rest = parts.slice(parts[0] === 'apis' ? 3 : 2)
  const namespace = rest[0] === 'namespaces' && rest.length > 2 ? rest[1] : undefined
  const resource = (namespace === undefined ? rest[0] : rest[2]) ?? ''
  const verb = url.searchParams.get('watch') ? 'watch' : (verbs[method] ?? 'get')
  const scope = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`
  const name = group === '' ? resource : `${resource}.${group}`
  return `${name} is forbidden: User "kpng-playground" cannot ${verb} resource "${resource}" in API group "${group}" ${scope}`
}

/** Things that go wrong in real clusters, at the push of a button. Everything is off at the start. */
export class Faults {
  #failures: Failure[] = []
  #delays: (DelayOptions & { milliseconds: number })[] = []
  readonly #atStart: WatchSettings
  readonly watches = new Set<Watch>()
  /** How many requests of the API were answered with a failure on purpose. */
  failed = 0

  readonly #store: Store
  readonly #settings: WatchSettings

  constructor(
    store: Store,
    settings: WatchSettings,
    /** Closes the listener and every connection, and listens again on the same port. */
    readonly restart: (downMs?: number) => Promise<void>,
  ) {
    this.#store = store
    this.#settings = settings
    this.#atStart = { ...settings }
  }

  /** Cuts every watch, without a word: the socket is destroyed. */
  dropWatches(): void {
    for (const watch of [...this.watches]) watch.drop()
  }

  /** Ends every watch in order, as servers do after its time. */
  endWatches(): void {
    for (const watch of [...this.watches]) watch.end()
  }

  /** Forgets all history: lists and watches from an earlier version are answered with 410. Open watches go on. */
  expireVersions(): void {
    this.#store.compact()
  }

  /** Forgets all history, and tells every open watch so with an ERROR event. */
  expireWatches(): void {
    this.#store.compact()
    const message = `too old resource version: 1 (${this.#store.revision})`
    for (const watch of [...this.watches]) watch.fail(new StatusError(410, 'Expired', message))
  }

  /** Watches, those open and those to come, send not a byte more and stay open; `false` ends it for new ones. */
  hangWatches(on = true): void {
    this.#settings.hang = on
    if (on) for (const watch of this.watches) watch.hang()
  }

  /** Waits before each answer; 0 ends it. */
  delayAnswers(milliseconds: number, options: DelayOptions = {}): void {
    this.#delays = milliseconds > 0 ? [{ ...options, milliseconds }] : []
  }

  /** Fails the next requests. */
  failNext(count: number, options: FailureOptions = {}): void {
    this.#failures.push({ ...options, left: count, fraction: 1 })
  }

  /** Fails this fraction (0 to 1) of all requests from now on; 0 ends it. */
  failFraction(fraction: number, options: FailureOptions = {}): void {
    this.#failures = this.#failures.filter(({ left }) => left !== Number.POSITIVE_INFINITY)
    if (fraction > 0) this.#failures.push({ ...options, left: Number.POSITIVE_INFINITY, fraction })
  }

  /** How `sendInitialEvents` is treated: supported, refused (422) or ignored, as servers before 1.27 do. */
  streamingLists(mode: WatchSettings['streamingLists']): void {
    this.#settings.streamingLists = mode
  }

  /** Whether watches that ask for bookmarks get them. A streaming list still ends with its own. */
  bookmarks(on: boolean): void {
    this.#settings.bookmarks = on
  }

  /** Whether a watch from an expired version gets an ERROR event in a 200 answer (`event`) or a 410 answer (`status`). */
  expiredWatch(how: WatchSettings['expiredWatch']): void {
    this.#settings.expiredWatch = how
  }

  /** Everything works again as it did at the start. */
  clear(): void {
    this.#failures = []
    this.#delays = []
    Object.assign(this.#settings, this.#atStart)
  }

  /** The server's side: waits or throws as a test has asked for. */
  async beforeAnswer(method: string, url: URL): Promise<void> {
    const line = `${method} ${url.pathname}${url.search}`
    for (const { milliseconds, match } of this.#delays) {
      if (match && !match.test(line)) continue
      await new Promise((resolve) => setTimeout(resolve, milliseconds))
    }
    const failure = this.#failures.find(({ match, left }) => left > 0 && (!match || match.test(line)))
    if (!failure || Math.random() >= failure.fraction) return
    failure.left -= 1
    this.#failures = this.#failures.filter(({ left }) => left > 0)
    this.failed += 1
    throw failureError(failure, method, url)
  }

  follow(watch: Watch, closed: (listener: () => void) => void): void {
    this.watches.add(watch)
    closed(() => this.watches.delete(watch))
  }
}

function failureError({ code = 500, retryAfterSeconds }: Failure, method: string, url: URL): StatusError {
  const seconds = retryAfterSeconds ?? (code === 429 ? 1 : undefined)
  const message =
    code === 403
      ? deniedMessage(method, url)
      : code === 429
        ? 'Too many requests, please try again later.'
        : `a fault that a test has asked for (HTTP ${code})`
  const details = seconds === undefined ? undefined : { retryAfterSeconds: seconds }
  return new StatusError(code, reasons[code] ?? 'Unknown', message, details)
}
