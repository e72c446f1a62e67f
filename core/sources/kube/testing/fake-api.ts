import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

// A small Kubernetes API server for tests of the source: lists, pages, watches, streaming lists, expiry. It does not know
// kinds: each path can be a collection.

export interface FakeObject {
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; resourceVersion?: string }
  [field: string]: unknown
}

export interface FakeRequest {
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly kind: 'list' | 'watch' | 'streaming list'
  /** When it came, by the clock of `performance`. */
  readonly atMs: number
}

interface Change {
  readonly version: number
  readonly path: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: FakeObject
}

interface Watcher {
  readonly path: string
  readonly query: URLSearchParams
  readonly response: ServerResponse
}

export class FakeApi {
  /** `yes`: like 1.32 and newer; `refuse`: like 1.27 without the feature; `ignore`: a normal watch, no mark at its end. */
  streaming: 'yes' | 'refuse' | 'ignore' = 'yes'
  /** Whether lists of resourceVersion 0 come from a cache, which knows no pages. */
  watchCache = true
  /** Answers a request in place of the server when it returns true. */
  intercept: (request: FakeRequest, response: ServerResponse) => boolean | Promise<boolean> = () => false
  /** Paths that exist without objects in them; others are 404 in plain text, as the API server says it. */
  readonly collections = new Set<string>()
  readonly requests: FakeRequest[] = []
  readonly #objects = new Map<string, Map<string, FakeObject>>()
  readonly #watchers = new Set<Watcher>()
  readonly #sockets = new Set<Socket>()
  #log: Change[] = []
  #version = 100
  #oldest = 0
  #server: Server | undefined
  port = 0

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get version(): string {
    return String(this.#version)
  }

  get watchers(): number {
    return this.#watchers.size
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => void this.#serve(request, response))
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve))
    this.port = (server.address() as AddressInfo).port
    return this
  }

  async stop(): Promise<void> {
    this.dropConnections()
    await new Promise((resolve) => this.#server?.close(resolve))
  }

  set(path: string, object: FakeObject): FakeObject {
    const table = this.#table(path)
    const key = keyOf(object)
    const type = table.has(key) ? 'MODIFIED' : 'ADDED'
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } }
    table.set(key, stored)
    this.#publish({ version: this.#version, path, type, object: stored })
    return stored
  }

  remove(path: string, name: string, namespace = ''): void {
    const table = this.#table(path)
    const object = table.get(`${namespace}/${name}`)
    if (!object) return
    table.delete(`${namespace}/${name}`)
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } }
    this.#publish({ version: this.#version, path, type: 'DELETED', object: last })
  }

  objects(path: string): FakeObject[] {
    return [...this.#table(path).values()]
  }

  /** Versions before now can no longer be watched from. */
  compact(): void {
    this.#oldest = this.#version
    this.#log = []
  }

  bookmark(annotations?: Record<string, string>): void {
    for (const watcher of this.#watchers) this.#send(watcher, bookmarkOf(this.version, annotations))
  }

  sendToWatchers(event: unknown): void {
    for (const watcher of this.#watchers) this.#send(watcher, event)
  }

  /** Ends the watches as the server does when their time is over. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end()
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.url)
    const query = url.searchParams
    const kind = query.get('watch') !== '1' ? 'list' : query.has('sendInitialEvents') ? 'streaming list' : 'watch'
    const asked: FakeRequest = { path: url.pathname, query, headers: request.headers, kind, atMs: performance.now() }
    this.requests.push(asked)
    if (await this.intercept(asked, response)) return
    if (!this.collections.has(asked.path) && !this.#objects.has(asked.path)) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('404 page not found\n')
    } else if (kind === 'list') this.#list(asked, response)
    else this.#watch(asked, response)
  }

  #list({ path, query }: FakeRequest, response: ServerResponse): void {
    const all = this.objects(path).filter((object) => matches(object, query))
    const notOlderThan = query.get('resourceVersion') ?? ''
    if (Number(notOlderThan) > this.#version) {
      const said = `Timeout: Too large resource version: ${notOlderThan}, current: ${this.version}`
      sendStatus(response, 504, said, 'Timeout')
      return
    }
    const fromCache = this.watchCache && notOlderThan === '0'
    const limit = (fromCache ? 0 : Number(query.get('limit') ?? 0)) || all.length
    const [start = 0, version = this.#version] = (query.get('continue') ?? '').split(':').filter(Boolean).map(Number)
    if (version < this.#oldest) {
      sendStatus(response, 410, 'The provided continue parameter is too old', 'Expired')
      return
    }
    const end = start + limit
    const metadata = { resourceVersion: String(version), ...(end < all.length && { continue: `${end}:${version}` }) }
    sendJson(response, 200, { kind: 'List', apiVersion: 'v1', metadata, items: all.slice(start, end) })
  }

  #watch({ path, query, kind }: FakeRequest, response: ServerResponse): void {
    if (kind === 'streaming list' && this.streaming === 'refuse') {
      const said = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled'
      sendStatus(
        response,
        422,
        `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: ${said}`,
        'Invalid',
      )
      return
    }
    const since = query.get('resourceVersion')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const watcher = { path, query, response }
    if (since === null) {
      for (const object of this.objects(path)) {
        if (matches(object, query)) this.#send(watcher, { type: 'ADDED', object })
      }
      const end = { 'k8s.io/initial-events-end': 'true' }
      if (this.streaming === 'yes') this.#send(watcher, bookmarkOf(this.version, end))
    } else if (Number(since) < this.#oldest) {
      const status = { kind: 'Status', code: 410, reason: 'Expired', message: `too old resource version: ${since}` }
      this.#send(watcher, { type: 'ERROR', object: status })
      response.end()
      return
    } else {
      for (const change of this.#log) if (change.version > Number(since)) this.#deliver(watcher, change)
    }
    this.#watchers.add(watcher)
    response.once('close', () => this.#watchers.delete(watcher))
  }

  #publish(change: Change): void {
    this.#log.push(change)
    for (const watcher of this.#watchers) this.#deliver(watcher, change)
  }

  #deliver(watcher: Watcher, { path, type, object }: Change): void {
    if (path === watcher.path && matches(object, watcher.query)) this.#send(watcher, { type, object })
  }

  #send({ response }: Watcher, event: unknown): void {
    response.write(`${JSON.stringify(event)}\n`)
  }

  #table(path: string): Map<string, FakeObject> {
    let table = this.#objects.get(path)
    if (!table) {
      table = new Map()
      this.#objects.set(path, table)
    }
    return table
  }
}

const keyOf = ({ metadata }: FakeObject) => `${metadata.namespace ?? ''}/${metadata.name}`

const bookmarkOf = (resourceVersion: string, annotations?: Record<string, string>) => ({
  type: 'BOOKMARK',
  object: { kind: 'Bookmark', metadata: { resourceVersion, ...(annotations && { annotations }) } },
})

/** Labels that must be missing (`!key`) or equal (`key=value`), and a name: all that the source asks for and that tests need. */
function matches({ metadata: { name, labels = {} } }: FakeObject, query: URLSearchParams): boolean {
  const [, asked = name] = /^metadata\.name=(.*)$/.exec(query.get('fieldSelector') ?? '') ?? []
  if (name !== asked) return false
  const requirements = (query.get('labelSelector') ?? '').split(',').filter(Boolean)
  return requirements.every((text) => {
    if (text.startsWith('!')) return labels[text.slice(1)] === undefined
    const [key = '', value] = text.split('=')
    return labels[key] === value
  })
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export function sendStatus(
  response: ServerResponse,
  code: number,
  message: string,
  reason = '',
  headers: Record<string, string> = {},
): void {
  sendJson(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, code }, headers)
}
