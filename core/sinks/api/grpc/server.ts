import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer as createListener, type Server as Listener, type Socket } from 'node:net'
import { type Log, messageOf } from '@kpng/api'
import { type Address, formatAddress, parseAddress } from '@kpng/client/address'
import { Admission } from './admission.js'
import { type Handler, responseHeaders, ServerCall } from './call.js'
import { Connections } from './connections.js'
import { defaultKeepalive, type Keepalive } from './keepalive.js'
import { type Limits, limitsOf } from './limits.js'
import { bind } from './listening.js'
import { readOpening } from './opening.js'
import { followRotation } from './rotation.js'
import { type ServerStats, Stats } from './stats.js'
import { RpcError, Status, statusHeaders } from './status.js'
import { loadTls, type TlsFiles, type TlsMaterial, tlsFilesOf } from './tls.js'

export interface ServerOptions {
  /** `tcp://host:port`, `tcp://:port` (every address), `unix:///path`. Port 0: any free one. */
  readonly address: string
  /** Mutual TLS; without any of the files, plain text. */
  readonly tls?: Partial<TlsFiles>
  /** By path: `/package.Service/Method`. */
  readonly handlers: ReadonlyMap<string, Handler>
  readonly limits?: Partial<Limits>
  readonly keepalive?: Partial<Keepalive>
  /** Called for each connection that comes, before anything is done for it. More may wait behind it. */
  readonly onAccepted?: () => void
  readonly log: Log
}

export interface Server {
  /** The real address, with the port that was given. */
  readonly address: string
  readonly stats: ServerStats
  /**
   * Takes no more connections, ends every call with UNAVAILABLE, tells the clients to go, and closes by force what is left after
   * `graceMs`. Resolves when everything is closed.
   */
  close(graceMs: number): Promise<void>
}

/** Starts a gRPC server. Throws KpngError when the address or the TLS files cannot be used. */
export async function listen(options: ServerOptions): Promise<Server> {
  const address = parseAddress(options.address)
  const files = tlsFilesOf(options.tls)
  const material = files && (await loadTls(files))
  const limits = limitsOf(options.limits)
  const server = createHttp2Server(limits, material)
  const running = new RunningServer(server, options, address, limits)
  await running.start()
  if (files && material) {
    const apply = (renewed: TlsMaterial) => (server as Http2SecureServer).setSecureContext(tlsSettings(renewed))
    running.onClose(followRotation({ files, current: material, everyMs: limits.tlsReloadMs, apply, log: options.log }))
  }
  return running
}

const tlsSettings = (material: TlsMaterial) => ({ ...material, minVersion: 'TLSv1.2' as const })

function createHttp2Server(limits: Limits, material: TlsMaterial | undefined): Http2Server | Http2SecureServer {
  const options = {
    maxSessionMemory: limits.maxSessionMemoryMiB,
    settings: {
      maxConcurrentStreams: limits.maxStreamsPerConnection,
      maxHeaderListSize: limits.maxHeaderBytes,
      enableConnectProtocol: false,
    },
  }
  if (!material) return createServer(options)
  return createSecureServer({
    ...options,
    ...tlsSettings(material),
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: limits.setupTimeoutMs,
  })
}

/** Accepts connections. They are paused until they are let in. */
function createListenerFor({ maxConnections, tcpKeepAliveMs }: Limits): Listener {
  const listener = createListener({
    pauseOnConnect: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: tcpKeepAliveMs,
  })
  listener.maxConnections = maxConnections
  return listener
}

class RunningServer implements Server {
  readonly stats: Stats
  readonly #listener: Listener
  readonly #server: Http2Server | Http2SecureServer
  readonly #options: ServerOptions
  readonly #limits: Limits
  readonly #admission = new Admission({ admit: (socket) => this.#admit(socket) })
  readonly #connections: Connections
  readonly #calls = new Set<ServerCall>()
  readonly #closers: (() => void)[] = []
  #address: Address
  #closed: Promise<void> | undefined

  constructor(server: Http2Server | Http2SecureServer, options: ServerOptions, address: Address, limits: Limits) {
    this.#server = server
    this.#options = options
    this.#address = address
    this.#limits = limits
    this.stats = new Stats(options.log)
    this.#listener = createListenerFor(limits)
    this.#connections = new Connections(this.#listener, server, {
      ownAddress: formatAddress(address),
      limits,
      keepalive: { ...defaultKeepalive, ...options.keepalive },
      stats: this.stats,
      log: options.log,
    })
    this.#listener.on('connection', (socket) => {
      if (!this.#connections.accept(socket)) return
      this.#admission.add(socket)
      options.onAccepted?.()
    })
    server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#open(stream, headers))
  }

  get address(): string {
    return formatAddress(this.#address)
  }

  async start(): Promise<void> {
    this.#address = await bind(this.#listener, this.#address)
    this.#listener.on('error', (error) =>
      this.#options.log.error('The listening socket failed', { address: this.address, error: messageOf(error) }),
    )
  }

  onClose(closer: () => void): void {
    this.#closers.push(closer)
  }

  close(graceMs: number): Promise<void> {
    this.#closed ??= this.#close(graceMs)
    return this.#closed
  }

  async #close(graceMs: number): Promise<void> {
    for (const closer of this.#closers) closer()
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()))
    this.#admission.close()
    for (const call of this.#calls) call.abort(stopping())
    this.#connections.drain()
    const force = setTimeout(() => this.#connections.destroy(), graceMs)
    await Promise.all([closed, this.#connections.allClosed()])
    clearTimeout(force)
  }

  #admit(socket: Socket): void {
    // The handle reads from now on, and what it reads goes to HTTP/2.
    socket.read(0)
    this.#server.emit('connection', socket)
  }

  #open(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { log, handlers } = this.#options
    const peer = this.#connections.peerOf(stream.session as ServerHttp2Session | undefined)
    // What ends a stream early is told by its `close`; without a listener it would end the process.
    stream.on('error', (error) => log.detail(4, 'Call broken', { peer: peer.address, error: messageOf(error) }))
    if (stream.destroyed || stream.closed) return // Opened and reset in one go.
    const opening = readOpening(headers, (path) => handlers.has(path))
    if (opening.kind === 'http') {
      stream.respond({ ':status': opening.status, 'content-type': 'text/plain', ...allow(opening.status) })
      stream.end(`${opening.sentence}\n`)
      return
    }
    const handler = opening.kind === 'call' ? handlers.get(opening.path) : undefined
    if (opening.kind === 'refused' || !handler || this.#closed) {
      const { code, message } = opening.kind === 'refused' ? opening.error : stopping()
      log.detail(4, 'Call refused', { method: headers[':path'], peer: peer.address, code, error: message })
      stream.respond({ ...responseHeaders, ...statusHeaders(code, message) }, { endStream: true })
      return
    }
    const { path, timeoutMs } = opening
    const { maxRequestBytes, lingerMs } = this.#limits
    const call = new ServerCall(stream, { path, peer, timeoutMs, maxRequestBytes, lingerMs, log })
    this.#track(call, stream)
    void call.run(handler)
  }

  #track(call: ServerCall, stream: ServerHttp2Stream): void {
    this.#calls.add(call)
    this.stats.calls += 1
    this.stats.callsStarted += 1
    stream.once('close', () => {
      this.#calls.delete(call)
      this.stats.calls -= 1
    })
  }
}

const allow = (status: number) => (status === 405 ? { allow: 'POST' } : {})

const stopping = () => new RpcError(Status.UNAVAILABLE, 'The server is stopping: try another one, or again later')
