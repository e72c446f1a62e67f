import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { bytesOfIp, ipOfBytes } from './ip.js'

/** What clients of an HTTP server may use. Anybody may connect to some of kpng's ports, and none of them may keep the others out. */
export interface HttpLimits {
  /** Connections at the same time. */
  readonly maxConnections: number
  /** Connections of one client at the same time. An IPv6 client is a /64: it can have any address in there. */
  readonly maxConnectionsPerClient: number
  /** How long a client may take to send the headers of a request, counted from its connection or its last answer. */
  readonly headersTimeoutMs: number
  /** How long a client may take to send a whole request. An answer may take longer. */
  readonly requestTimeoutMs: number
  /** How long a connection may wait for its next request. */
  readonly idleTimeoutMs: number
  /** How long an answer may stand still because the client does not read, or because nothing is written. 0: for ever. */
  readonly answerTimeoutMs: number
  /** The largest body of a request. */
  readonly maxBodyBytes: number
  /** Whether an answer may be cut short to make room for another client. If not, that client is turned away. */
  readonly mayCutAnswers: boolean
}

/** For `createServer` of node:http and node:https. */
export const httpServerOptions = ({ headersTimeoutMs, requestTimeoutMs, idleTimeoutMs }: HttpLimits) =>
  ({
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    // Of TLS; node:http ignores it.
    handshakeTimeout: headersTimeoutMs,
    // Node looks for connections that are too slow only now and then.
    connectionsCheckingInterval: Math.min(headersTimeoutMs / 2, 5000),
  }) satisfies ServerOptions & { handshakeTimeout: number }

interface Connection {
  readonly socket: Socket
  readonly client: string
  /** Requests that are being answered. */
  answers: number
}

/** The connections of one or more HTTP servers, which share the limits. */
export class HttpConnections {
  readonly #limits: HttpLimits
  /**
   * The one that has waited longest for its client comes first. By addresses and ports: a TLS socket is another object than the one that
   * was accepted.
   */
  readonly #open = new Map<string, Connection>()
  readonly #perClient = new Map<string, number>()

  constructor(limits: HttpLimits) {
    this.#limits = limits
  }

  /** Serves requests within the limits. The server was made with `httpServerOptions`, and without a handler. */
  serve(server: Server, handler: RequestListener): void {
    const { answerTimeoutMs, maxBodyBytes } = this.#limits
    server.timeout = answerTimeoutMs
    server.on('connection', (socket) => this.#add(socket))
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#answering(request.socket, response)
      if (request.headers['transfer-encoding'] !== undefined) {
        // Its length is unknown, and Node would read the rest of it after the answer, however long that is.
        response.setHeader('Connection', 'close')
        response.on('finish', () => !request.complete && request.socket.destroySoon())
      }
      if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) {
        response.writeHead(413, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' })
        response.end(`The body is longer than ${maxBodyBytes} bytes.\n`)
      } else handler(request, response)
    })
  }

  #add(socket: Socket): void {
    const { remoteAddress } = socket
    // The client may have gone again before it was accepted.
    if (remoteAddress === undefined) {
      socket.destroy()
      return
    }
    const key = keyOf(socket)
    const client = clientOf(remoteAddress)
    const { maxConnections, maxConnectionsPerClient } = this.#limits
    const count = this.#perClient.get(client) ?? 0
    const hasRoom =
      (count < maxConnectionsPerClient || this.#closeOne((each) => each.client === client)) &&
      (this.#open.size < maxConnections || this.#closeOne(() => true))
    if (!hasRoom) {
      socket.destroy()
      return
    }
    const connection = { socket, client, answers: 0 }
    this.#open.set(key, connection)
    this.#perClient.set(client, (this.#perClient.get(client) ?? 0) + 1)
    socket.once('close', () => this.#remove(key, connection))
  }

  #answering(socket: Socket, response: ServerResponse): void {
    const key = keyOf(socket)
    const connection = this.#open.get(key)
    if (!connection) return
    connection.answers++
    response.once('close', () => {
      connection.answers--
      // To the end of the line: it waits since now.
      if (this.#open.delete(key)) this.#open.set(key, connection)
    })
  }

  #closeOne(isCandidate: (connection: Connection) => boolean): boolean {
    let cut: [string, Connection] | undefined
    for (const entry of this.#open) {
      if (!isCandidate(entry[1])) continue
      if (entry[1].answers === 0) return this.#close(...entry)
      cut ??= entry
    }
    return cut !== undefined && this.#limits.mayCutAnswers && this.#close(...cut)
  }

  #close(key: string, connection: Connection): true {
    this.#remove(key, connection)
    connection.socket.destroy()
    return true
  }

  #remove(key: string, connection: Connection): void {
    if (this.#open.get(key) !== connection) return
    this.#open.delete(key)
    const count = (this.#perClient.get(connection.client) ?? 0) - 1
    if (count > 0) this.#perClient.set(connection.client, count)
    else this.#perClient.delete(connection.client)
  }
}

const keyOf = ({ localAddress, localPort, remoteAddress, remotePort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`

/** Who a client is, as far as limits are concerned: an IPv4 address or an IPv6 network. */
export function clientOf(remoteAddress: string): string {
  const bytes = bytesOfIp(remoteAddress.replace(/%.*/, ''))
  if (!bytes) return remoteAddress
  return ipOfBytes(bytes.length === 4 ? bytes : bytes.map((byte, index) => (index < 8 ? byte : 0)))
}
