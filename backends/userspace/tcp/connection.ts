import { hostPort } from '@kpng/api'
import type { Frontend } from '@kpng/dataplane'
import type { EndpointAddress, Scope } from '../balancer/balancer.js'
import type { ConnectionNotes } from '../connection-record.js'
import { isOutOfDescriptors } from '../descriptors.js'
import type { Entrance } from '../entrance.js'
import type { Flow } from '../flows.js'
import { longestTimerMs } from '../later.js'
import type { Moved } from './byte-mover.js'
import type { Carrier, CarrierEvents } from './carrier.js'
import { logCopying } from './connection-log.js'

/**
 * One client's TCP connection. States: *dialing* an endpoint, and the next one when that fails; *waiting* for a file
 * descriptor to dial with; *copying*; *draining*: copying, but its endpoint or its address is gone; *ended*.
 */
export class TcpConnection implements Flow, CarrierEvents {
  readonly #entrance: Entrance
  readonly #carrier: Carrier
  readonly #clientIp: string
  readonly scope: Scope
  readonly #notes: ConnectionNotes | undefined
  readonly sinceMs = Date.now()
  readonly #moved = { toEndpoint: 0, toClient: 0 }
  /** Endpoints that failed. */
  #tried: Set<string> | undefined
  #attempts = 0
  #endpoint: EndpointAddress | undefined
  #isCopying = false
  #addressGone = false
  #stopDialTimer: (() => void) | undefined
  #stopDrainTimer: (() => void) | undefined
  #copied: ((moved: Moved) => void) | undefined

  constructor(
    entrance: Entrance,
    makeCarrier: (events: CarrierEvents) => Carrier,
    clientIp: string,
    scope: Scope,
    notes: ConnectionNotes | undefined,
  ) {
    this.#entrance = entrance
    this.#clientIp = clientIp
    this.scope = scope
    this.#notes = notes
    this.#carrier = makeCarrier(this)
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
    return hostPort(this.#clientIp, this.#carrier.clientPort)
  }

  start(): void {
    this.#entrance.enter(this)
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
    this.#carrier.reset()
  }

  connected(): void {
    const { servicePort, surroundings, balancer } = this.#entrance
    const endpoint = this.#endpoint as EndpointAddress
    this.#stopTimingDial()
    // The endpoint may have been removed while it was dialed; nothing was sent yet, so another one can have this client.
    if (!balancer.has(endpoint.key, this.scope)) {
      this.#carrier.stopDialing()
      this.#attempts--
      this.#dialNext()
      return
    }
    this.#isCopying = true
    servicePort.flows.add(endpoint.key, this)
    servicePort.flows.end(this)
    this.#entrance.countConnection()
    this.#notes?.connected(endpoint.key)
    if (surroundings.log.shows(4)) this.#copied = logCopying(surroundings.log, this.#carrier.addresses())
    this.#carrier.carry({ counters: servicePort.counters, moved: this.#moved })
  }

  dialFailed(error: NodeJS.ErrnoException): void {
    const { servicePort, surroundings } = this.#entrance
    const { key } = this.#endpoint as EndpointAddress
    this.#stopTimingDial()
    if (isOutOfDescriptors(error)) {
      surroundings.descriptors.report(error)
      this.#attempts--
    } else {
      servicePort.counters.dialFailures++
      surroundings.log.detail(2, 'Dial failed', { service: servicePort.name, endpoint: key, error: error.message })
      this.#tried ??= new Set()
      this.#tried.add(key)
    }
    this.#dialNext()
  }

  failed(side: 'client' | 'endpoint', message: string): void {
    this.#notes?.failed(`${side}: ${message}`)
  }

  ended(): void {
    const { flows, counters } = this.#entrance.servicePort
    this.#entrance.leave(this)
    this.#stopTimingDial()
    this.#stopDraining()
    if (this.#isCopying) {
      flows.remove((this.#endpoint as EndpointAddress).key, this)
      counters.active--
      this.#copied?.(this.#moved)
    } else {
      flows.end(this)
      this.#notes?.failed('the client left before an endpoint answered')
    }
    if (!this.#notes) return
    this.#notes.bytesToEndpoint = this.#moved.toEndpoint
    this.#notes.bytesToClient = this.#moved.toClient
    this.#notes.ended()
  }

  #drain(): void {
    const { drainMs, later } = this.#entrance.surroundings
    if (drainMs > longestTimerMs || this.#stopDrainTimer !== undefined) return
    this.#stopDrainTimer = later(drainMs, () => this.abort())
  }

  #stopDraining(): void {
    this.#stopDrainTimer?.()
    this.#stopDrainTimer = undefined
  }

  #dialNext(): void {
    if (this.#entrance.surroundings.descriptors.usedUp) this.#waitForDescriptor()
    else this.#dialNow()
  }

  #dialNow(): void {
    const { dialTimeoutsMs, later } = this.#entrance.surroundings
    const timeoutMs = dialTimeoutsMs[this.#attempts++]
    this.#endpoint =
      timeoutMs === undefined
        ? undefined
        : this.#entrance.nextEndpoint(this.scope, this.#clientIp, this.#carrier.clientPort, this.#tried)
    if (timeoutMs === undefined || !this.#endpoint) {
      this.#giveUp(this.#tried ? 'the endpoints do not answer' : 'there is no endpoint')
      return
    }
    this.#notes?.picked()
    this.#stopDialTimer = later(timeoutMs, () => {
      this.#carrier.stopDialing()
      this.dialFailed(Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    })
    this.#carrier.dial(this.#endpoint)
  }

  #stopTimingDial(): void {
    this.#stopDialTimer?.()
    this.#stopDialTimer = undefined
  }

  #waitForDescriptor(): void {
    this.#entrance.surroundings.descriptors.wait(
      () => {
        if (this.#carrier.isOpen) this.#dialNow()
      },
      () => this.#giveUp('no file descriptor became free in time'),
    )
  }

  #giveUp(reason: string): void {
    const { servicePort } = this.#entrance
    if (!this.#carrier.isOpen) return
    servicePort.counters.failures++
    servicePort.warn('Failed to connect to balancer', { remoteAddress: this.client, reason })
    this.#notes?.failed(reason)
    this.#carrier.reset()
  }
}
