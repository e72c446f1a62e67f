import { createServer, type Server, type Socket } from 'node:net'
import { hostPort } from '@kpng/api'
import type { Place } from '../capture/capture.js'
import { isOutOfDescriptors } from '../descriptors.js'
import { clientIpOf, type Entrance } from '../entrance.js'
import { keepAlive } from './byte-mover.js'
import { TcpConnection } from './connection.js'

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

  static async listen(entrance: Entrance, { ip, port }: Place): Promise<TcpProxySocket> {
    const options = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, ...keepAlive }
    const server = createServer(options, (client) => accept(entrance, client))
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

  close(): void {
    this.#server.close()
    this.#closed()
  }
}

function accept(entrance: Entrance, client: Socket): void {
  const clientIp = clientIpOf(client.remoteAddress)
  // The client may have gone again before it was accepted.
  if (clientIp === undefined) {
    client.destroy()
    return
  }
  const notes = entrance.notes(clientIp, client.remotePort ?? 0)
  const { log, descriptors } = entrance.surroundings
  const { servicePort } = entrance
  if (log.shows(3)) {
    log.detail(3, 'Accepted TCP connection from remote', {
      remoteAddress: hostPort(clientIp, client.remotePort ?? 0),
      localAddress: hostPort(client.localAddress ?? 'unknown', client.localPort ?? 0),
    })
  }
  const admission = entrance.admit(clientIp)
  if (admission.admitted && !descriptors.full) {
    new TcpConnection(entrance, client, clientIp, admission.scope, notes).start()
    return
  }
  if (admission.admitted) {
    servicePort.counters.failures++
    servicePort.warn('Turned a client away: too many files are open', { remoteAddress: clientIp })
  } else {
    servicePort.counters.refused++
    log.detail(2, "Couldn't find an endpoint for service", {
      service: servicePort.name,
      remoteAddress: clientIp,
      reason: admission.reason,
    })
  }
  client.on('error', () => {})
  client.resetAndDestroy()
  notes?.failed(`the client was refused: ${admission.admitted ? 'too many files are open' : admission.reason}`)
  notes?.ended()
}
