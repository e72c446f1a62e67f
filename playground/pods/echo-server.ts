import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer, isIPv6, type Server, type Socket } from 'node:net'

export interface EchoIdentity {
  pod: string
  namespace: string
  node: string
}

export interface EchoPort {
  protocol: 'TCP' | 'UDP'
  port: number
}

/** What runs in a pod. */
export interface PodServer {
  /** Opens every port on every address, or none. */
  listen(addresses: readonly string[], ports: readonly EchoPort[]): Promise<void>
  close(): Promise<void>
}

/** A connection is raw TCP unless it starts like an HTTP request; seven letters and a space are enough to tell. */
const httpStart = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE) /
const shortestDecision = 8

/**
 * The program in every sample pod: says its name and who asked. One TCP port speaks HTTP and plain lines, told apart by
 * the first bytes; UDP answers each datagram.
 */
export class EchoServer implements PodServer {
  readonly #http: HttpServer
  readonly #tcp: Server[] = []
  readonly #udp: UdpSocket[] = []
  readonly #sockets = new Set<Socket>()
  readonly #identity: EchoIdentity

  constructor(identity: EchoIdentity) {
    this.#identity = identity
    this.#http = createHttpServer((request, response) => this.#answer(request, response))
  }

  /** Opens every port on every address, or none: a port that cannot be opened closes the others and throws. */
  async listen(addresses: readonly string[], ports: readonly EchoPort[]): Promise<void> {
    try {
      for (const address of addresses) {
        for (const { protocol, port } of ports) {
          if (protocol === 'UDP') await this.#listenUdp(address, port)
          else await this.#listenTcp(address, port)
        }
      }
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async #listenTcp(address: string, port: number): Promise<void> {
    const server = createServer((socket) => this.#serve(socket))
    this.#tcp.push(server)
    server.listen(port, address)
    await once(server, 'listening')
    // Without a listener, a connection that cannot be accepted would end the process.
    server.on('error', () => {})
  }

  async #listenUdp(address: string, port: number): Promise<void> {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
    this.#udp.push(socket)
    socket.bind(port, address)
    await once(socket, 'listening')
    socket.on('message', (message, client) => {
      const text = `${this.#identity.pod}: ${message.toString('utf8')}`
      socket.send(text, client.port, client.address, () => {})
    })
    socket.on('error', () => {})
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    let seen = Buffer.alloc(0)
    const decide = (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk])
      const text = seen.toString('latin1')
      if (seen.length < shortestDecision && !text.includes('\n')) return
      socket.off('data', decide)
      socket.off('end', finish)
      socket.pause()
      socket.unshift(seen)
      if (httpStart.test(text)) this.#http.emit('connection', socket)
      else this.#echoLines(socket)
      socket.resume()
    }
    const finish = () => socket.end(seen.length > 0 ? `${this.#identity.pod}: ${seen.toString('utf8')}\n` : '')
    socket.on('data', decide)
    socket.on('end', finish)
  }

  #echoLines(socket: Socket): void {
    let rest = ''
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      const answer = lines.map((line) => `${this.#identity.pod}: ${line}\n`).join('')
      if (answer !== '' && !socket.write(answer)) {
        socket.pause()
        socket.once('drain', () => socket.resume())
      }
    })
    socket.on('end', () => socket.end(rest === '' ? '' : `${this.#identity.pod}: ${rest}\n`))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pod, namespace, node } = this.#identity
    const { remoteAddress, remotePort } = request.socket
    const client = `${remoteAddress}:${remotePort}`
    const path = request.url ?? '/'
    request.resume()
    response.setHeader('x-pod-name', pod)
    if (/json/.test(request.headers.accept ?? '')) {
      response.setHeader('content-type', 'application/json')
      response.end(`${JSON.stringify({ pod, namespace, node, client, method: request.method, path })}\n`)
      return
    }
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.end(`pod=${pod} namespace=${namespace} node=${node} client=${client} path=${path}\n`)
  }

  async close(): Promise<void> {
    const closing = this.#tcp.filter((server) => server.listening).map((server) => once(server, 'close'))
    for (const server of this.#tcp) server.close()
    for (const socket of this.#sockets) socket.destroy()
    for (const socket of this.#udp) {
      try {
        socket.close()
      } catch {
        // It was never bound.
      }
    }
    this.#tcp.length = 0
    this.#udp.length = 0
    await Promise.all(closing)
  }
}
