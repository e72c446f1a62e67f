import type { Socket } from 'node:net'
import { hostPort } from '@kpng/api'
import type { Frontend } from '@kpng/dataplane'
import type { EndpointAddress, Scope } from '../balancer/balancer.js'
import type { ConnectionNotes } from '../connection-record.js'
import { isOutOfDescriptors } from '../descriptors.js'
import type { Entrance } from '../entrance.js'
import type { Flow } from '../flows.js'
import { logCopying, remoteOf } from './connection-log.js'
import { dial } from './dial.js'

/** Node's timers hold 24.8 days at most; a longer drain time means for ever. */
const longestTimerMs = 2 ** 31 - 1

/**
 * One client's TCP connection. States: *dialing* an endpoint, and the next one when that fails; *waiting* for a file
 * descriptor to dial with; *copying*; *draining*: copying, but its endpoint or its address is gone; *ended*.
 */
export class TcpConnection implements Flow {
  readonly #entrance: Entrance
  readonly #client: Socket
  readonly #clientIp: string
  readonly scope: Scope
  readonly #notes: ConnectionNotes | undefined
  readonly sinceMs = Date.now()
  readonly #moved = { toEndpoint: 0, toClient: 0 }
  readonly #tried = new Set<string>()
  #attempts = 0
  #stopDialing: () => void = () => {}
  #endpoint: Socket | undefined
  #drainTimer: NodeJS.Timeout | undefined
  #addressGone = false

  constructor(entrance: Entrance, client: Socket, clientIp: string, scope: Scope, notes: ConnectionNotes | undefined) {
    this.#entrance = entrance
    this.#client = client
    this.#clientIp = clientIp
    this.scope = scope
    this.#notes = notes
  }

  get bytesToEndpoint(): number {
    return this.#moved.toEndpoint
  }

  get bytesToClient(): number {
    return this.#moved.toClient
  }

  get frontend(): Frontend {
    return this.#entrance.portal
  }

  get client(): string {
    return hostPort(this.#clientIp, this.#client.remotePort ?? 0)
  }

  start(): void {
    // An error ends in 'close'; without a listener it would end the process.
    this.#client.on('error', (error) => this.#notes?.failed(`client: ${error.message}`))
    this.#client.once('close', this.#clientGone)
    this.#client.once('close', this.#entrance.surroundings.descriptors.opened())
    this.#client.once('close', this.#entrance.entered(this))
    this.#entrance.servicePort.flows.begin(this)
    this.#dialNext()
  }

  endpointGone(): void {
    this.#drain()
  }

  /** What is open goes on, as in the kernel's proxies: the policy is about new connections. */
  endpointForbidden(): void {}

  endpointBack(): void {
    if (!this.#addressGone) this.#stopDraining()
  }

  /** The address that the client has connected to is no longer the service's, and will not be again for this connection. */
  addressGone(): void {
    this.#addressGone = true
    this.#drain()
  }

  /** Resets both sides: one of them may be closed already while the other still waits for its peer to read. */
  abort(): void {
    this.#notes?.failed('the proxy ended it: its endpoint, its service or the proxy itself is gone')
    this.#client.resetAndDestroy()
    this.#endpoint?.resetAndDestroy()
  }

  #drain(): void {
    const { drainMs } = this.#entrance.surroundings
    if (drainMs > longestTimerMs || this.#drainTimer !== undefined) return
    this.#drainTimer = setTimeout(() => this.abort(), drainMs)
    this.#drainTimer.unref()
  }

  #stopDraining(): void {
    clearTimeout(this.#drainTimer)
    this.#drainTimer = undefined
  }

  #dialNext(): void {
    const { surroundings } = this.#entrance
    if (surroundings.descriptors.usedUp) this.#waitForDescriptor()
    else this.#dialNow()
  }

  #dialNow(): void {
    const timeoutMs = this.#entrance.surroundings.dialTimeoutsMs[this.#attempts++]
    const endpoint =
      timeoutMs === undefined
        ? undefined
        : this.#entrance.nextEndpoint(this.scope, this.#clientIp, this.#client.remotePort ?? 0, this.#tried)
    if (timeoutMs === undefined || !endpoint) {
      this.#giveUp(endpoint || this.#tried.size > 0 ? 'the endpoints do not answer' : 'there is no endpoint')
      return
    }
    this.#notes?.picked()
    const { byteMover, descriptors } = this.#entrance.surroundings
    this.#stopDialing = dial(byteMover.connect(endpoint), timeoutMs, {
      closed: descriptors.opened(),
      connected: (socket) => this.#connected(endpoint, socket),
      failed: (error) => this.#dialFailed(endpoint, error),
    })
  }

  #dialFailed(endpoint: EndpointAddress, error: NodeJS.ErrnoException): void {
    const { servicePort, surroundings } = this.#entrance
    if (isOutOfDescriptors(error)) {
      surroundings.descriptors.report(error)
      this.#attempts--
    } else {
      servicePort.counters.dialFailures++
      surroundings.log.detail(2, 'Dial failed', {
        service: servicePort.name,
        endpoint: endpoint.key,
        error: error.message,
      })
      this.#tried.add(endpoint.key)
    }
    this.#dialNext()
  }

  #connected(endpoint: EndpointAddress, socket: Socket): void {
    const { servicePort, surroundings, balancer } = this.#entrance
    // The endpoint may have been removed while it was dialed; nothing was sent yet, so another one can have this client.
    if (!balancer.has(endpoint.key, this.scope)) {
      socket.destroy()
      this.#attempts--
      this.#dialNext()
      return
    }
    this.#endpoint = socket
    const { flows, counters } = servicePort
    const { log, byteMover } = surroundings
    this.#client.off('close', this.#clientGone)
    flows.add(endpoint.key, this)
    flows.end(this)
    this.#entrance.countConnection()
    if (this.#notes) {
      this.#notes.connected(endpoint.key)
      socket.on('error', (error) => this.#notes?.failed(`endpoint: ${error.message}`))
    }
    const copied = log.shows(4) ? logCopying(log, this.#client, socket) : undefined
    byteMover.move({ client: this.#client, endpoint: socket, counters, moved: this.#moved }, (moved) => {
      this.#stopDraining()
      flows.remove(endpoint.key, this)
      counters.active--
      copied?.(moved)
      if (this.#notes) {
        this.#notes.bytesToEndpoint = moved.toEndpoint
        this.#notes.bytesToClient = moved.toClient
        this.#notes.ended()
      }
    })
  }

  readonly #clientGone = () => {
    this.#stopDialing()
    this.#stopDraining()
    this.#entrance.servicePort.flows.end(this)
    this.#notes?.failed('the client left before an endpoint answered')
    this.#notes?.ended()
  }

  #waitForDescriptor(): void {
    this.#entrance.surroundings.descriptors.wait(
      () => {
        if (!this.#client.destroyed) this.#dialNow()
      },
      () => this.#giveUp('no file descriptor became free in time'),
    )
  }

  #giveUp(reason: string): void {
    const { servicePort } = this.#entrance
    if (this.#client.destroyed) return
    servicePort.counters.failures++
    servicePort.warn('Failed to connect to balancer', { remoteAddress: remoteOf(this.#client), reason })
    this.#client.resetAndDestroy()
    this.#notes?.failed(reason)
    this.#notes?.ended()
  }
}
