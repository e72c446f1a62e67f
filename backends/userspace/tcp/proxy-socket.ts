import { createServer, type Server, type Socket } from 'node:net'
import { hostPort } from '@kpng/api'
import type { Place } from '../capture/capture.js'
import { isOutOfDescriptors } from '../descriptors.js'
import { clientIpOf, type Entrance } from '../entrance.js'
import { accept } from './accept.js'
import { type ByteMover, keepAlive } from './byte-mover.js'
import { NodeCarrier } from './node-carrier.js'

/** Enough for a burst; the kernel caps it at net.core.somaxconn. */
const backlog = 4096

/** Accepts the TCP connections of one portal. Closing it stops accepting; open connections go on. */
export class TcpProxySocket {
  readonly place: Place
  readonly #server: Server

  readonly #closed: () => void

  private constructor(server: Server, place: Place, closed: () => void) {
    this.#server = server
    this.place = place
    this.#closed = closed
  }

  static async listen(entrance: Entrance, { ip, port }: Place, byteMover: ByteMover): Promise<TcpProxySocket> {
    const options = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, ...keepAlive }
    const server = createServer(options, (client) => acceptSocket(entrance, client, byteMover))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host: ip, port, backlog, ipv6Only: true }, () => {
        server.off('error', reject)
        resolve()
      })
    })
    const { descriptors, log } = entrance.surroundings
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (isOutOfDescriptors(error)) descriptors.report(error)
      else log.warn('Accept failed', { service: entrance.servicePort.name, error: error.message })
    })
    const address = server.address()
    const bound = { ip, port: typeof address === 'object' && address ? address.port : port }
    return new TcpProxySocket(server, bound, descriptors.listening())
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#closed()
  }
}

function acceptSocket(entrance: Entrance, client: Socket, byteMover: ByteMover): void {
  const ip = clientIpOf(client.remoteAddress)
  // The client may have gone again before it was accepted.
  if (ip === undefined) {
    client.destroy()
    return
  }
  const { descriptors } = entrance.surroundings
  accept(entrance, {
    ip,
    port: client.remotePort ?? 0,
    entranceAddress: () => hostPort(client.localAddress ?? 'unknown', client.localPort ?? 0),
    carrier: (events) => new NodeCarrier(client, byteMover, descriptors, events),
    reset: () => void client.on('error', () => {}).resetAndDestroy(),
  })
}
