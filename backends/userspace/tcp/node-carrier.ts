import type { Socket } from 'node:net'
import { hostPort } from '@kpng/api'
import type { EndpointAddress } from '../balancer/balancer.js'
import type { Descriptors } from '../descriptors.js'
import type { ByteMover } from './byte-mover.js'
import type { Carrier, CarrierEvents, MovedCounts } from './carrier.js'

/** Sockets of Node, and a byte mover between them. Works everywhere. */
export class NodeCarrier implements Carrier {
  readonly #client: Socket
  readonly #byteMover: ByteMover
  readonly #descriptors: Descriptors
  readonly #events: CarrierEvents
  #endpoint: Socket | undefined
  #isConnected = false
  #isCarrying = false

  constructor(client: Socket, byteMover: ByteMover, descriptors: Descriptors, events: CarrierEvents) {
    this.#client = client
    this.#byteMover = byteMover
    this.#descriptors = descriptors
    this.#events = events
    // An error ends in 'close'; without a listener it would end the process.
    client.on('error', (error) => events.failed('client', error.message))
    client.once('close', descriptors.opened())
    client.once('close', () => {
      if (this.#isCarrying) return
      this.stopDialing()
      events.ended()
    })
  }

  get clientPort(): number {
    return this.#client.remotePort ?? 0
  }

  get isOpen(): boolean {
    return !this.#client.destroyed
  }

  dial(endpoint: EndpointAddress): void {
    const socket = this.#byteMover.connect(endpoint)
    this.#endpoint = socket
    this.#isConnected = false
    // Stays for the socket's life: later errors end in 'close', which is what the byte mover acts on.
    socket.on('error', (error) => this.#failed(socket, error))
    socket.once('close', this.#descriptors.opened())
    socket.once('connect', () => {
      if (this.#endpoint !== socket) return
      this.#isConnected = true
      this.#events.connected()
    })
  }

  stopDialing(): void {
    this.#endpoint?.destroy()
    this.#endpoint = undefined
  }

  carry({ counters, moved }: MovedCounts): void {
    this.#isCarrying = true
    const pair = { client: this.#client, endpoint: this.#endpoint as Socket, counters, moved }
    this.#byteMover.move(pair, () => this.#events.ended())
  }

  /** One of them may be closed already while the other still waits for its peer to read. */
  reset(): void {
    this.#client.resetAndDestroy()
    this.#endpoint?.resetAndDestroy()
  }

  addresses(): ReturnType<Carrier['addresses']> {
    const [client, endpoint] = [this.#client, this.#endpoint]
    return {
      client: hostPort(client.remoteAddress ?? 'unknown', client.remotePort ?? 0),
      entrance: hostPort(client.localAddress ?? 'unknown', client.localPort ?? 0),
      source: hostPort(endpoint?.localAddress ?? 'unknown', endpoint?.localPort ?? 0),
      endpoint: hostPort(endpoint?.remoteAddress ?? 'unknown', endpoint?.remotePort ?? 0),
    }
  }

  #failed(socket: Socket, error: NodeJS.ErrnoException): void {
    if (this.#endpoint !== socket) return
    if (this.#isConnected) {
      this.#events.failed('endpoint', error.message)
      return
    }
    this.stopDialing()
    this.#events.dialFailed(error)
  }
}
