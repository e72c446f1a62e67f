import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { hostPort } from '@kpng/api'
import type { Place } from '../capture/capture.js'
import { isOutOfDescriptors } from '../descriptors.js'
import { clientIpOf, type Entrance } from '../entrance.js'
import { type SessionEvents, UdpSession } from './session.js'

/** Takes the datagrams of one portal. Each client (address and port) has a session with one endpoint until it falls silent. */
export class UdpProxySocket {
  readonly place: Place
  readonly #socket: Socket
  readonly #entrance: Entrance
  /** The client silent for longest comes first. */
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
    const type = entrance.portal.family === 'IPv4' ? 'udp4' : 'udp6'
    const socket = createSocket({ type, ipv6Only: type === 'udp6' })
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error) => {
        // Unlike a server, a datagram socket stays open when it cannot be bound, and portals are tried again and again.
        socket.close()
        reject(error)
      }
      socket.once('error', failed)
      socket.bind({ address: ip, port }, () => {
        socket.off('error', failed)
        resolve()
      })
    })
    socket.once('close', entrance.surroundings.descriptors.listening())
    return new UdpProxySocket(socket, { ip, port: socket.address().port }, entrance)
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep)
    for (const session of [...this.#sessions.values()]) session.abort()
    this.#socket.close()
  }

  #receive(datagram: Buffer, client: RemoteInfo): void {
    const { servicePort } = this.#entrance
    const key = `${client.address}|${client.port}`
    const session = this.#sessions.get(key) ?? this.#begin(key, client)
    if (!session) return
    this.#used(key, session)
    servicePort.counters.bytesToEndpoint += datagram.length
    session.bytesToEndpoint += datagram.length
    if (session.notes) session.notes.bytesToEndpoint += datagram.length
    session.send(datagram)
  }

  #begin(key: string, client: RemoteInfo): UdpSession | undefined {
    const { servicePort, surroundings } = this.#entrance
    const { log, clock } = surroundings
    const { counters } = servicePort
    const clientIp = clientIpOf(client.address)
    if (clientIp === undefined) return undefined
    const notes = this.#entrance.notes(clientIp, client.port)
    const turnAway = (reason: string) => {
      notes?.failed(reason)
      notes?.ended()
      return undefined
    }
    const admission = this.#entrance.admit(clientIp)
    if (!admission.admitted) {
      counters.refused++
      return turnAway(`the client was refused: ${admission.reason}`)
    }
    if (!this.#makeRoom()) {
      counters.failures++
      servicePort.warn('Dropping a datagram: too many files are open', { remoteAddress: clientIp })
      return turnAway('too many files are open')
    }
    const endpoint = this.#entrance.nextEndpoint(admission.scope, clientIp, client.port)
    if (!endpoint) {
      counters.failures++
      return turnAway('there is no endpoint')
    }
    notes?.picked()
    log.detail(3, 'New UDP connection from client', { address: hostPort(client.address, client.port) })
    const closed = surroundings.descriptors.opened()
    const events: SessionEvents = {
      answer: (datagram) => {
        this.#used(key, session)
        counters.bytesToClient += datagram.length
        session.bytesToClient += datagram.length
        if (notes) notes.bytesToClient += datagram.length
        this.#socket.send(datagram, client.port, client.address, () => {})
      },
      ended: (error) => {
        closed()
        this.#ended(key, session)
        if (error) this.#failed(clientIp, session, error)
      },
    }
    const from = hostPort(clientIp, client.port)
    const session = new UdpSession(endpoint, from, this.#entrance, admission.scope, clock.now(), events, notes)
    this.#sessions.set(key, session)
    servicePort.flows.add(endpoint.key, session)
    this.#entrance.countConnection()
    return session
  }

  #used(key: string, session: UdpSession): void {
    session.lastUsedMs = this.#entrance.surroundings.clock.now()
    this.#sessions.delete(key)
    this.#sessions.set(key, session)
  }

  /**
   * Whether there is room for one more client. Most have asked their one question and had their answer: rather than leave a new one
   * unanswered, the session silent for longest ends. Should its client come back it begins another.
   */
  #makeRoom(): boolean {
    const { servicePort, surroundings } = this.#entrance
    if (this.#sessions.size < surroundings.maxUdpSessions && !surroundings.descriptors.usedUp) return true
    const [longestSilent] = this.#sessions.values()
    if (!longestSilent) return false
    servicePort.counters.crowdedOut++
    servicePort.warn('Too many UDP clients at a time: those silent for longest make room', {
      clients: this.#sessions.size,
    })
    longestSilent.abort()
    return true
  }

  #ended(key: string, session: UdpSession): void {
    const { servicePort } = this.#entrance
    if (this.#sessions.get(key) === session) this.#sessions.delete(key)
    servicePort.flows.remove(session.endpoint.key, session)
    servicePort.counters.active--
  }

  #failed(clientIp: string, session: UdpSession, error: NodeJS.ErrnoException): void {
    const { servicePort, surroundings, balancer } = this.#entrance
    if (isOutOfDescriptors(error)) surroundings.descriptors.report(error)
    else balancer.leave(clientIp, session.endpoint.key)
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
      if (session.lastUsedMs > before) return
      log.detail(3, 'Connection to endpoint closed due to inactivity', { endpoint: session.endpoint.key })
      session.abort()
    }
  }
}
