import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { hostPort } from '../address.js'
import type { Place } from '../capture/capture.js'
import { isOutOfDescriptors } from '../descriptors.js'
import { clientIpOf, type Entrance } from '../entrance.js'
import type { ProxySocket } from '../proxy-socket.js'
import { type SessionEvents, UdpSession } from './session.js'

/** Takes the datagrams of one portal. Each client (address and port) has a session with one endpoint until it falls silent. */
export class UdpProxySocket implements ProxySocket {
  readonly place: Place
  readonly #socket: Socket
  readonly #entrance: Entrance
  readonly #sessions = new Map<string, UdpSession>()
  readonly #sweep: NodeJS.Timeout

  private constructor(socket: Socket, place: Place, entrance: Entrance) {
    this.#socket = socket
    this.place = place
    this.#entrance = entrance
    const { udpIdleTimeoutMs, log } = entrance.surroundings
    this.#sweep = setInterval(() => this.#endIdle(), Math.max(10, Math.min(1000, udpIdleTimeoutMs / 4)))
    this.#sweep.unref()
    socket.on('message', (datagram, client) => this.#receive(datagram, client))
    socket.on('error', (error) =>
      log.detail(1, 'ReadFrom had a temporary failure', { service: entrance.servicePort.name, error: error.message }),
    )
  }

  static async listen(entrance: Entrance, { ip, port }: Place): Promise<UdpProxySocket> {
    const type = entrance.plan.portal.family === 'v4' ? 'udp4' : 'udp6'
    const socket = createSocket({ type, ipv6Only: type === 'udp6' })
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind({ address: ip, port }, () => {
        socket.off('error', reject)
        resolve()
      })
    })
    return new UdpProxySocket(socket, { ip, port: socket.address().port }, entrance)
  }

  close(): void {
    clearInterval(this.#sweep)
    for (const session of [...this.#sessions.values()]) session.abort()
    this.#socket.close()
  }

  #receive(datagram: Buffer, client: RemoteInfo): void {
    const { servicePort, surroundings } = this.#entrance
    const key = `${client.address}|${client.port}`
    const session = this.#sessions.get(key) ?? this.#begin(key, client)
    if (!session) return
    session.lastUsedMs = surroundings.clock.now()
    servicePort.counters.bytesToEndpoint += datagram.length
    if (session.notes) session.notes.bytesToEndpoint += datagram.length
    session.send(datagram)
  }

  #begin(key: string, client: RemoteInfo): UdpSession | undefined {
    const { servicePort, surroundings, plan } = this.#entrance
    const { log, clock, maxUdpSessions } = surroundings
    const { counters } = servicePort
    const clientIp = clientIpOf(client.address)
    const admission = clientIp === undefined ? undefined : this.#entrance.admit(clientIp)
    if (clientIp === undefined || !admission?.admitted) {
      counters.refused++
      return undefined
    }
    if (this.#sessions.size >= maxUdpSessions || surroundings.descriptors.usedUp) {
      counters.failures++
      log.detail(1, 'Dropping a datagram: there are too many UDP clients or open files', { service: servicePort.name })
      return undefined
    }
    const notes = this.#entrance.notes(clientIp, client.port)
    const endpoint = this.#entrance.nextEndpoint(admission.scope, clientIp, client.port, new Set())
    if (!endpoint) {
      counters.failures++
      return undefined
    }
    notes?.picked()
    log.detail(3, 'New UDP connection from client', { address: hostPort(client.address, client.port) })
    const closed = surroundings.descriptors.opened()
    const events: SessionEvents = {
      answer: (datagram) => {
        session.lastUsedMs = clock.now()
        counters.bytesToClient += datagram.length
        if (notes) notes.bytesToClient += datagram.length
        this.#socket.send(datagram, client.port, client.address, () => {})
      },
      ended: (error) => {
        closed()
        this.#ended(key, session, error)
      },
    }
    const session = new UdpSession(endpoint, plan.portal.family, clock.now(), events, notes)
    this.#sessions.set(key, session)
    servicePort.flows.add(endpoint.key, session)
    counters.connections++
    counters.active++
    return session
  }

  #ended(key: string, session: UdpSession, error: NodeJS.ErrnoException | undefined): void {
    const { servicePort, surroundings } = this.#entrance
    if (this.#sessions.get(key) === session) this.#sessions.delete(key)
    servicePort.flows.remove(session.endpoint.key, session)
    servicePort.counters.active--
    if (!error) return
    if (isOutOfDescriptors(error)) surroundings.descriptors.report(error)
    servicePort.counters.dialFailures++
    surroundings.log.detail(2, 'Dial failed', {
      service: servicePort.name,
      endpoint: session.endpoint.key,
      error: error.message,
    })
  }

  #endIdle(): void {
    const { clock, udpIdleTimeoutMs, log } = this.#entrance.surroundings
    const before = clock.now() - udpIdleTimeoutMs
    for (const session of [...this.#sessions.values()]) {
      if (session.lastUsedMs > before) continue
      log.detail(3, 'Connection to endpoint closed due to inactivity', { endpoint: session.endpoint.key })
      session.abort()
    }
  }
}
