import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo, Socket } from 'node:net'
import { dirname, extname, join } from 'node:path'
import { constants, createGzip, type Gzip, gzipSync } from 'node:zlib'
import type {
  AgentStatus,
  ClientKind,
  ConnectionsAnswer,
  Explanation,
  LiveNode,
  LiveService,
  LiveSync,
} from '@kpng/api'
import { here, keyOf, liveService, MockCluster, type MockService } from './mock-cluster.js'
import { mockExplanation, nothingFound } from './mock-explain.js'
import { MockHistory, mockConnections } from './mock-history.js'

export interface MockAgentOptions {
  /** Default: 5,000. */
  readonly services?: number
  /** Changes per second that happen by themselves. Default: none. */
  readonly changesPerSecond?: number
  /** Default: `nftables`. */
  readonly backend?: string
  /** Default: `node`. */
  readonly role?: AgentStatus['role']
  /** The data plane cannot be read back. */
  readonly cannotReadBack?: boolean
  /** A node of a core that cannot be asked: only the used endpoints are known. */
  readonly knowsUsedOnly?: boolean
  /** It has not synced yet; a core has not read everything. */
  readonly isUnsynced?: boolean
  /** A stream as older agents send it: rows and syncs only. */
  readonly isOlder?: boolean
  readonly hints?: AgentStatus['hints']
  /** Default: any free one. */
  readonly port?: number
}

/** As the agent sends it with the page. */
const headers = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
}
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

const filesIn = join(dirname(createRequire(import.meta.url).resolve('@kpng/dashboard/package.json')), 'dist')

/** Of a cluster without Services. */
const firstSync: LiveSync = {
  ...{ number: 1, at: new Date().toISOString(), durationMs: 1, full: true, services: [], moreServices: 0 },
}

interface Reader {
  readonly out: Gzip
  readonly response: ServerResponse
}

/** An agent that serves the page and speaks its contract (api/live.ts), with a cluster that does not exist. Tests change it as they like. */
export class MockAgent {
  readonly cluster: MockCluster
  readonly history: MockHistory
  /** Every answer is this status instead, if it is set. */
  refusal: { readonly status: number; readonly error: string } | undefined
  /** `Last-Event-ID` of each stream that was opened; empty: it had none. */
  readonly resumedFrom: string[] = []
  staleReason: string | undefined
  /** Streams are opened, and nothing comes. */
  isSilent = false
  readonly #options: MockAgentOptions
  readonly #readers = new Set<Reader>()
  readonly #sockets = new Set<Socket>()
  readonly #timers: NodeJS.Timeout[] = []
  readonly #waiting = new Set<string>()
  /** As they were last sent. */
  readonly #rows = new Map<string, LiveService>()
  readonly #nodes = new Map<string, LiveNode>()
  /** The key of each change, by event. */
  readonly #ring: { readonly event: number; readonly keys: readonly string[]; readonly syncs: readonly LiveSync[] }[] =
    []
  #event = 1
  #server = createServer((request, response) => this.#answer(request, response))
  #isPaused = false

  constructor(options: MockAgentOptions = {}) {
    this.#options = options
    this.cluster = new MockCluster(options.services ?? 5000)
    this.history = new MockHistory(this.cluster)
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    if (options.role === 'core') {
      for (let number = 1; number <= 40; number++) {
        const name = `worker-${number}`
        const isBehind = number % 13 === 0
        this.#nodes.set(name, {
          // One of them is not connected.
          ...{ name, watchers: number === 20 ? 0 : 1, revision: 88_214 - (isBehind ? number : 0) },
          ...(isBehind ? { behindSince: new Date(Date.now() - number * 1000).toISOString() } : {}),
        })
      }
    }
  }

  async start(): Promise<string> {
    const { port = 0, changesPerSecond = 0 } = this.#options
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
    const every = (ms: number, work: () => void) => this.#timers.push(setInterval(() => this.#isPaused || work(), ms))
    every(200, () => {
      for (const key of this.history.advance(changesPerSecond / 5)) this.#waiting.add(key)
      this.flush()
    })
    every(1000, () => this.#sendAll('pulse', { status: this.status(), sample: this.history.sample() }))
    return this.url
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  /** Changes a Service and sends it with the next event. `undefined`: it is deleted. */
  change(key: string, sentence: string, how: (service: MockService) => void, error?: string): void {
    const service = this.cluster.services.get(key)
    if (!service) throw new Error(`The mock has no Service ${key}.`)
    how(service)
    this.history.note(service, sentence, error)
    this.#waiting.add(key)
  }

  add(service: MockService): void {
    this.cluster.services.set(keyOf(service), service)
    this.#waiting.add(keyOf(service))
  }

  remove(key: string): void {
    this.cluster.services.delete(key)
    this.#waiting.add(key)
  }

  /** No event is sent, as if the agent hung. */
  pause(isPaused: boolean): void {
    this.#isPaused = isPaused
  }

  /** Ends all connections, as if the agent stopped. With a refusal or a closed server, the page cannot come back. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Sends what changed. */
  flush(): void {
    const syncs = this.history.takeFresh()
    if (this.#waiting.size === 0 && syncs.length === 0) return
    const keys = [...this.#waiting]
    this.#waiting.clear()
    this.#event++
    this.#ring.push({ event: this.#event, keys, syncs })
    if (this.#ring.length > 100) this.#ring.shift()
    this.#sendAll('changes', this.#changes(keys, syncs))
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.disconnect()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  status(): AgentStatus {
    const { role = 'node', backend = 'nftables', hints, isUnsynced = false } = this.#options
    const now = Date.now()
    const connected = {
      connected: true,
      since: new Date(now - 11_541_000).toISOString(),
      lastEvent: new Date(now - 400).toISOString(),
    }
    const { syncs } = this.history
    const lastSync = isUnsynced ? undefined : (syncs.at(-1) ?? firstSync)
    return {
      ...{ version: '0.9.0', node: role === 'core' ? 'core-1' : here.node, role },
      ...(role === 'node'
        ? { backend, features: backend === 'userspace' ? { mover: 'splice' } : {} }
        : { core: { synced: !isUnsynced, revision: 88_214, watchers: { local: this.#nodes.size } } }),
      startedAt: connected.since,
      now: new Date(now).toISOString(),
      source: {
        stale: this.staleReason !== undefined,
        ...(this.staleReason === undefined ? {} : { reason: this.staleReason }),
        watches: { services: connected, endpointslices: connected, nodes: connected },
      },
      ...(lastSync ? { lastSync } : {}),
      ...{ syncs: lastSync?.number ?? 0, failedSyncs: 0, fullSyncs: 1, skippedObjects: 0, problems: [] },
      services: this.cluster.services.size,
      endpoints: this.cluster.services.size * 8,
      frontends: Math.round(this.cluster.services.size * 1.3),
      ...(hints ? { hints } : {}),
    }
  }

  #row(key: string, isCached = false): LiveService | null {
    const cached = this.#rows.get(key)
    if (isCached && cached) return cached
    const row = this.#newRow(key)
    if (row) this.#rows.set(key, row)
    else this.#rows.delete(key)
    return row
  }

  #newRow(key: string): LiveService | null {
    const service = this.cluster.services.get(key)
    if (!service) return null
    const row = liveService(service)
    if (this.#options.isOlder) {
      const { verdict, headline, reason, findings, total, hints, sourceRanges, changedBy, changedAt, ...older } = row
      return older as LiveService
    }
    if (!this.#options.knowsUsedOnly) return row
    const { total, ...known } = row
    return known
  }

  #changes(keys: Iterable<string>, syncs: readonly LiveSync[]) {
    return { status: this.status(), syncs, services: Object.fromEntries([...keys].map((key) => [key, this.#row(key)])) }
  }

  #sendAll(name: string, data: object): void {
    if (this.isSilent || (this.#options.isOlder && name === 'pulse')) return
    const text = eventText(name, data, `mock.${this.#event}`)
    for (const { out } of this.#readers) out.write(text)
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://agent')
    const isQuestion = url.pathname.startsWith('/v1/')
    if (this.refusal && isQuestion) sendJson(response, this.refusal.status, { error: this.refusal.error })
    else if (url.pathname === '/v1/stream') this.#stream(request, response)
    else if (isQuestion) {
      const answer = this.#answerTo(url)
      sendJson(response, answer ? 200 : 404, answer ?? { error: `The agent API has no ${url.pathname}.` })
    } else sendFile(response, url.pathname)
  }

  #answerTo({ pathname, searchParams }: URL): object | undefined {
    switch (pathname) {
      case '/v1/status':
        return this.status()
      case '/v1/explain':
        return this.#explain(searchParams)
      case '/v1/endpoints':
        return { endpoints: this.#endpoints() }
      case '/v1/connections':
        return this.#connections()
      default:
        return undefined
    }
  }

  #stream(request: IncomingMessage, response: ServerResponse): void {
    const lastEventId = String(request.headers['last-event-id'] ?? '')
    this.resumedFrom.push(lastEventId)
    response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' })
    const out = createGzip({ flush: constants.Z_SYNC_FLUSH, level: 4 })
    out.pipe(response)
    const reader = { out, response }
    this.#readers.add(reader)
    response.on('close', () => this.#readers.delete(reader))
    const seen = Number(/^mock\.(\d+)$/.exec(lastEventId)?.[1] ?? 0)
    const missed = this.#ring.filter(({ event }) => event > seen)
    const canResume = seen > 0 && (this.#ring[0]?.event ?? 1) <= seen + 1
    if (!this.isSilent) out.write(canResume ? this.#resumed(missed) : this.#snapshot())
  }

  #resumed(missed: readonly { readonly keys: readonly string[]; readonly syncs: readonly LiveSync[] }[]): string {
    const keys = new Set(missed.flatMap((each) => each.keys))
    return eventText(
      'changes',
      this.#changes(
        keys,
        missed.flatMap(({ syncs }) => syncs),
      ),
      `mock.${this.#event}`,
    )
  }

  #snapshot(): string {
    const services = [...this.cluster.services.keys()].map((key) => this.#row(key, true))
    const data = {
      ...{ status: this.status(), services, changes: this.history.syncs.slice(-300) },
      ...(this.#options.isOlder ? {} : { samples: this.history.samples }),
      ...(this.#options.role === 'core' ? { nodes: [...this.#nodes.values()] } : {}),
    }
    return eventText('snapshot', data, `mock.${this.#event}`)
  }

  #explain(query: URLSearchParams): Explanation {
    const what = query.get('what') ?? ''
    const service = this.cluster.services.get(what)
    const { cannotReadBack = false, knowsUsedOnly = false } = this.#options
    const options = { canReadBack: !cannotReadBack, knowsAll: !knowsUsedOnly }
    if (service) return mockExplanation(service, (query.get('from') ?? 'pod') as ClientKind, options)
    return {
      ...{ schemaVersion: 2, node: here.node, question: what, works: false, frontends: [] },
      diagnosis: {
        ...nothingFound,
        service: what,
        headline: `There is no Service ${what}. Did you mean payments/api?`,
      },
    }
  }

  #endpoints() {
    return [...this.cluster.services.values()].flatMap(({ namespace, name, endpoints }) =>
      endpoints.map(({ ips, node }) => ({ namespace, service: name, ips, hostname: '', isLocal: node === here.node })),
    )
  }

  #connections(): ConnectionsAnswer {
    if (this.#options.backend === 'userspace') return mockConnections(this.cluster)
    return { total: 0, why: 'The kernel carries the connections. Counters are off: --service-counters turns them on.' }
  }
}

const eventText = (name: string, data: object, id: string): string =>
  `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`

function sendJson(response: ServerResponse, status: number, data: object): void {
  const body = gzipSync(JSON.stringify(data), { level: 1 })
  response.writeHead(status, { ...headers, 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(body)
}

function sendFile(response: ServerResponse, path: string): void {
  const name = path === '/' ? 'index.html' : path.slice(1)
  if (!readdirSync(filesIn).includes(name)) {
    response.writeHead(404, headers).end()
    return
  }
  const body = gzipSync(readFileSync(join(filesIn, name)))
  response
    .writeHead(200, { ...headers, 'Content-Type': types[extname(name)] ?? 'text/plain', 'Content-Encoding': 'gzip' })
    .end(body)
}
