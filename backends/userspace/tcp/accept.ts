import { hostPort } from '@kpng/api'
import type { Entrance } from '../entrance.js'
import type { Carrier, CarrierEvents } from './carrier.js'
import { TcpConnection } from './connection.js'

/** A client that the system has accepted. */
export interface AcceptedClient {
  readonly ip: string
  readonly port: number
  /** Where it came in, for logs. */
  readonly entranceAddress: () => string
  /** Takes the socket. */
  readonly carrier: (events: CarrierEvents) => Carrier
  /** Ends it instead. */
  readonly reset: () => void
}

/** Lets a client in, or turns it away. */
export function accept(entrance: Entrance, client: AcceptedClient): void {
  const { log, descriptors } = entrance.surroundings
  const { servicePort } = entrance
  const notes = entrance.notes(client.ip, client.port)
  if (log.shows(3)) {
    log.detail(3, 'Accepted TCP connection from remote', {
      remoteAddress: hostPort(client.ip, client.port),
      localAddress: client.entranceAddress(),
    })
  }
  const admission = entrance.admit(client.ip)
  if (admission.admitted && !descriptors.full) {
    new TcpConnection(entrance, client.carrier, client.ip, admission.scope, notes).start()
    return
  }
  if (admission.admitted) {
    servicePort.counters.failures++
    servicePort.warn('Turned a client away: too many files are open', { remoteAddress: client.ip })
  } else {
    servicePort.counters.refused++
    log.detail(2, "Couldn't find an endpoint for service", {
      service: servicePort.name,
      remoteAddress: client.ip,
      reason: admission.reason,
    })
  }
  client.reset()
  notes?.failed(`the client was refused: ${admission.admitted ? 'too many files are open' : admission.reason}`)
  notes?.ended()
}
