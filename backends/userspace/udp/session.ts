import { createSocket, type Socket } from 'node:dgram'
import type { Frontend } from '@kpng/dataplane'
import type { EndpointAddress, Scope } from '../balancer/balancer.js'
import type { ConnectionNotes } from '../connection-record.js'
import type { Entrance } from '../entrance.js'
import type { Flow } from '../flows.js'

export interface SessionEvents {
  /** A datagram for the client. */
  readonly answer: (datagram: Buffer) => void
  /** The session is over; the client's next datagram begins another one. */
  readonly ended: (error?: NodeJS.ErrnoException) => void
}

/** Datagrams that wait for the socket to be connected; more are lost, as UDP allows. */
const maxQueued = 64

/**
 * One client's datagrams to one endpoint. States: *connecting*, datagrams queue; *open*; *ended*. A connected socket: only the
 * endpoint's answers come in, and the system tells when nobody listens there.
 */
export class UdpSession implements Flow {
  readonly endpoint: EndpointAddress
  readonly scope: Scope
  lastUsedMs: number
  readonly sinceMs = Date.now()
  bytesToEndpoint = 0
  bytesToClient = 0
  readonly client: string
  readonly #entrance: Pick<Entrance, 'portal'>
  /** Undefined: nobody wants to be told about it. */
  readonly notes: ConnectionNotes | undefined
  readonly #socket: Socket
  readonly #events: SessionEvents
  #queue: Buffer[] | undefined = []
  #ended = false

  constructor(
    endpoint: EndpointAddress,
    client: string,
    entrance: Pick<Entrance, 'portal'>,
    scope: Scope,
    nowMs: number,
    events: SessionEvents,
    notes: ConnectionNotes | undefined,
  ) {
    const { family } = entrance.portal
    this.endpoint = endpoint
    this.client = client
    this.#entrance = entrance
    this.scope = scope
    this.lastUsedMs = nowMs
    this.#events = events
    this.notes = notes
    // The address is an IP address: without this Node would ask its resolver, in a thread.
    const lookup = (host: string, _options: unknown, found: (e: null, ip: string, family: number) => void) =>
      process.nextTick(found, null, host, family === 'IPv4' ? 4 : 6)
    this.#socket = createSocket({ type: family === 'IPv4' ? 'udp4' : 'udp6', lookup } as Parameters<
      typeof createSocket
    >[0])
    this.#socket.on('error', (error) => this.#end(error))
    this.#socket.on('message', (datagram) => events.answer(datagram))
    this.#socket.connect(endpoint.port, endpoint.ip, (error?: NodeJS.ErrnoException) => {
      // Node passes what failed to this callback and emits no 'error' then: no route to the endpoint, for instance.
      if (error) this.#end(error)
      else this.#opened()
    })
  }

  get frontend(): Frontend {
    return this.#entrance.portal
  }

  send(datagram: Buffer): void {
    if (this.#queue) {
      if (this.#queue.length < maxQueued) this.#queue.push(datagram)
      return
    }
    if (!this.#ended) this.#socket.send(datagram, (error) => error && this.#end(error))
  }

  /** UDP knows no end of a conversation: the client moves at once. */
  endpointGone(): void {
    this.#end()
  }

  endpointForbidden(): void {
    this.#end()
  }

  /** It ended when its endpoint went. */
  endpointBack(): void {}

  abort(): void {
    this.#end()
  }

  #opened(): void {
    this.notes?.connected(this.endpoint.key)
    const queue = this.#queue ?? []
    this.#queue = undefined
    for (const datagram of queue) this.send(datagram)
  }

  #end(error?: NodeJS.ErrnoException): void {
    if (this.#ended) return
    this.#ended = true
    try {
      this.#socket.close()
    } catch {
      // Not open any more: what failed was opening it.
    }
    this.#events.ended(error)
    if (error) this.notes?.failed(`endpoint: ${error.message}`)
    this.notes?.ended()
  }
}
