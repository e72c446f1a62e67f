import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { KpngError } from '@kpng/api'
import { HttpConnections, type HttpLimits, hostProblem, httpServerOptions, originProblem } from '@kpng/api/node'
import { serverNames } from '../credentials.js'
import { StatusError } from '../status/status.js'
import type { Certificate } from '../tls/certificates.js'
import { sendError } from './respond.js'

const limits: HttpLimits = {
  maxConnections: 4096,
  // Everybody is on this machine.
  maxConnectionsPerClient: 4096,
  headersTimeoutMs: 30_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 65_000,
  // A watch may be silent for an hour; only the client decides when it has waited long enough.
  answerTimeoutMs: 0,
  maxBodyBytes: 16 * 1024 * 1024,
  mayCutAnswers: false,
}

/** The HTTPS listener. It can go away and come back on the same port, with the same certificate. */
export class ApiServer {
  #server: Server | undefined
  readonly #sockets = new Set<Socket>()
  #boundPort: number
  readonly #address: string
  readonly #certificate: Certificate
  readonly #handle: RequestListener

  constructor(address: string, port: number, certificate: Certificate, handle: RequestListener) {
    this.#address = address
    this.#certificate = certificate
    this.#handle = handle
    this.#boundPort = port
  }

  get port(): number {
    return this.#boundPort
  }

  async listen(): Promise<void> {
    const { certPem: cert, keyPem: key } = this.#certificate
    const server = createServer({ cert, key, ...httpServerOptions(limits) })
    new HttpConnections(limits).serve(server, (request, response) => {
      const problem =
        hostProblem(request, [...serverNames, this.#address]) ?? originProblem(request, request.method !== 'GET')
      if (problem === undefined) this.#handle(request, response)
      else sendError(response, new StatusError(403, 'Forbidden', problem))
    })
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    // A client that does not trust the certificate, or speaks plain HTTP, is its own problem.
    server.on('tlsClientError', (_error, socket) => socket.destroy())
    server.listen(this.#boundPort, this.#address)
    await Promise.race([
      once(server, 'listening'),
      once(server, 'error').then(([error]) => {
        const cause = error as NodeJS.ErrnoException
        const why =
          cause.code === 'EADDRINUSE'
            ? 'is already in use; choose another port, or 0 for a free one'
            : `cannot be opened: ${cause.message}`
        throw new KpngError('unavailable', `The playground's API address ${this.#address}:${this.#boundPort} ${why}.`, {
          cause,
        })
      }),
    ])
    // Without a listener, a connection that cannot be accepted would end the process.
    server.on('error', () => {})
    this.#boundPort = (server.address() as AddressInfo).port
    this.#server = server
  }

  /** Closes the listener and every connection, abruptly. */
  async close(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async restart(downMs = 0): Promise<void> {
    await this.close()
    if (downMs > 0) await new Promise((resolve) => setTimeout(resolve, downMs))
    await this.listen()
  }
}
