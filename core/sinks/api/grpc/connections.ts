import { constants, type Http2SecureServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { Server as Listener, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { hostPort, type Log, messageOf } from '@kpng/api'
import { clientOf, isAboutCertificate, type TlsProblem, tlsProblemOf } from '@kpng/api/node'
import type { Peer } from './call.js'
import { type Keepalive, keepAlive } from './keepalive.js'
import { CallRate, type Limits } from './limits.js'
import type { Stats } from './stats.js'

export interface ConnectionSettings {
  /** What stands for a client without an address of its own. */
  readonly ownAddress: string
  readonly limits: Limits
  readonly keepalive: Keepalive
  readonly stats: Stats
  readonly log: Log
}

interface Connection {
  readonly peer: Peer
  /** Whether the client's first SETTINGS came: only then it is known to speak HTTP/2. */
  begun: boolean
  hasCalled: boolean
  /** Closes the connection if its next step does not come in time. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Every connection of a server, from accept to close. States: accepted → let in → (with TLS: secured) → session → begun → used → closed. Once let in, each
 * but the last has an end in time: the set-up timeout until it has begun, the time for the first call, then the keepalive.
 */
export class Connections {
  readonly #settings: ConnectionSettings
  readonly #sockets = new Map<Socket, string>()
  /** How many each peer has. */
  readonly #ofPeers = new Map<string, number>()
  readonly #sessions = new Map<ServerHttp2Session, Connection>()
  readonly #whenEmpty: (() => void)[] = []

  constructor(listener: Listener, server: Http2Server | Http2SecureServer, settings: ConnectionSettings) {
    this.#settings = settings
    const { stats } = settings
    server.on('session', (session: ServerHttp2Session) => this.#opened(session))
    server.on('sessionError', (error: Error, session: ServerHttp2Session) => this.#failed(session, error))
    listener.on('drop', (data) => {
      const { remoteAddress, remotePort } = data ?? {}
      stats.fault('full', { peer: this.#address(remoteAddress, remotePort), connections: stats.connections })
    })
    server.on('tlsClientError', (error: Error, socket: TLSSocket) => this.#unsecured(socket, error))
    server.on('unknownProtocol', (socket: TLSSocket) => {
      stats.fault('protocol', {
        peer: this.#address(socket.remoteAddress, socket.remotePort),
        error: 'the client did not ask for h2 (ALPN)',
      })
      socket.destroy()
    })
  }

  peerOf(session: ServerHttp2Session | undefined): Peer {
    const connection = session && this.#sessions.get(session)
    return connection?.peer ?? { address: this.#settings.ownAddress, subject: undefined }
  }

  /** Tells every client to go (GOAWAY); what has not begun yet is closed at once. */
  drain(): void {
    for (const [session, { begun }] of this.#sessions) {
      if (begun) session.close()
      else session.destroy()
    }
  }

  destroy(): void {
    for (const session of this.#sessions.keys()) session.destroy()
    // A session that was told to close only half-closes its socket when it is destroyed.
    for (const socket of this.#sockets.keys()) socket.destroy()
  }

  /** Resolves when no connection is left. */
  async allClosed(): Promise<void> {
    if (this.#sockets.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve))
  }

  #address(host: string | undefined, port: number | undefined): string {
    return host === undefined || port === undefined ? this.#settings.ownAddress : hostPort(host, port)
  }

  /** Takes a new connection, unless its peer has as many as one peer may have: then it is closed. */
  accept(socket: Socket): boolean {
    const { stats, limits } = this.#settings
    // All connections of a unix socket are one peer's.
    const peer = clientOf(socket.remoteAddress ?? '')
    const count = (this.#ofPeers.get(peer) ?? 0) + 1
    const address = this.#address(socket.remoteAddress, socket.remotePort)
    if (count > limits.maxConnectionsPerPeer) {
      stats.fault('crowd', { peer: address, connections: count - 1 })
      socket.destroy()
      return false
    }
    this.#ofPeers.set(peer, count)
    stats.connectionsAccepted += 1
    stats.connections += 1
    this.#sockets.set(socket, address)
    socket.once('close', () => {
      stats.connections -= 1
      const left = (this.#ofPeers.get(peer) ?? 1) - 1
      if (left > 0) this.#ofPeers.set(peer, left)
      else this.#ofPeers.delete(peer)
      // Its TLS socket may be reported later in this turn, by the address that is kept here.
      setImmediate(() => this.#forget(socket))
    })
    return true
  }

  #forget(socket: Socket): void {
    this.#sockets.delete(socket)
    if (this.#sockets.size > 0) return
    for (const resolve of this.#whenEmpty.splice(0)) resolve()
  }

  #opened(session: ServerHttp2Session): void {
    const { limits, keepalive, stats, log } = this.#settings
    const { remoteAddress, remotePort } = session.socket
    const peer = { address: this.#address(remoteAddress, remotePort), subject: subjectOf(session.socket) }
    const connection: Connection = { peer, begun: false, hasCalled: false, timer: undefined }
    this.#sessions.set(session, connection)
    log.detail(4, 'Connection opened', { peer: peer.address, subject: peer.subject })

    const closeAfter = (afterMs: number) => {
      clearTimeout(connection.timer)
      connection.timer = setTimeout(() => {
        stats.fault('slow', { peer: peer.address, afterMs })
        session.destroy()
      }, afterMs).unref()
    }
    closeAfter(limits.setupTimeoutMs)
    session.once('remoteSettings', () => {
      connection.begun = true
      if (connection.hasCalled) clearTimeout(connection.timer)
      else closeAfter(limits.firstCallTimeoutMs)
      keepAlive(session, keepalive, () => {
        stats.fault('dead', { peer: peer.address, afterMs: keepalive.ackTimeoutMs })
        session.destroy()
      })
    })
    const rate = new CallRate(limits)
    session.on('stream', () => {
      connection.hasCalled = true
      if (connection.begun) clearTimeout(connection.timer)
      if (session.destroyed || rate.take()) return
      stats.fault('flood', { peer: peer.address, callsPerSecond: limits.callsPerSecond })
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      session.destroy()
    })
    session.once('close', () => {
      clearTimeout(connection.timer)
      this.#sessions.delete(session)
      log.detail(4, 'Connection closed', { peer: peer.address })
    })
  }

  #failed(session: ServerHttp2Session, error: Error): void {
    const { stats, log } = this.#settings
    const fields = { peer: this.peerOf(session).address, error: messageOf(error) }
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (!code.startsWith('ERR_HTTP2')) log.detail(4, 'Connection lost', fields)
    else if (!this.#sessions.get(session)?.begun) stats.fault('protocol', fields)
    else {
      // It speaks HTTP/2, and broke a rule of it later. No reason for alarm: grpc-go does when it closes, as it names a stream of
      // its own in GOAWAY.
      stats.faults.protocol += 1
      log.detail(1, 'Connection closed: its client broke a rule of HTTP/2', fields)
    }
  }

  #unsecured(socket: TLSSocket, error: Error): void {
    const { stats, log } = this.#settings
    const fields = { peer: this.#addressBelow(socket), error: reasonOf(socket, error) }
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') stats.fault('slow', fields)
    // A client that only looks whether the port is open, as load balancers do, is no fault.
    else if (code === 'ECONNRESET' && !socket.authorizationError) log.detail(4, 'Connection lost', fields)
    else stats.fault('tls', fields)
  }

  /**
   * A TLS socket that was refused has no address any more when it is reported. The one below it has: Node keeps it in a field without
   * documentation, so its absence must do no harm.
   */
  #addressBelow(socket: TLSSocket): string {
    const { _parent: below } = socket as { _parent?: Socket }
    return (below && this.#sockets.get(below)) ?? this.#address(socket.remoteAddress, socket.remotePort)
  }
}

function reasonOf(socket: TLSSocket, error: Error): string {
  const why: unknown = socket.authorizationError
  if (why) return `the client's certificate was refused: ${messageOf(why)}`
  const said = (error as { reason?: string }).reason ?? messageOf(error)
  const meaning = meaningOf(tlsProblemOf(said))
  return meaning === undefined ? said : `${meaning} (${said})`
}

function meaningOf(problem: TlsProblem | undefined): string | undefined {
  if (problem?.kind === 'no TLS') return 'the client does not use TLS'
  if (problem?.kind === 'no certificate') return 'the client gave no certificate'
  const isRefusal = problem?.kind === 'alert' && isAboutCertificate(problem.alert)
  return isRefusal ? "the client refused this server's certificate" : undefined
}

/** `CN=node-1,O=kpng` */
function subjectOf(socket: Socket | TLSSocket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined
  const subject: Record<string, string | string[]> = { ...socket.getPeerCertificate().subject }
  const parts = Object.entries(subject).flatMap(([name, values]) => [values].flat().map((value) => `${name}=${value}`))
  return parts.length === 0 ? undefined : parts.join(',')
}
