import { hostPort } from '@kpng/api'
import {
  connectTcp,
  Direction,
  EPOLLERR,
  EPOLLHUP,
  EPOLLIN,
  EPOLLOUT,
  EPOLLRDHUP,
  type EventHandler,
  type EventLoop,
  errorOf,
  localAddress,
  type Pipes,
  remoteAddress,
  resetAndClose,
  type SocketAddress,
  systemError,
  type TcpSyscalls,
} from '@kpng/linux/tcp'
import type { EndpointAddress } from '../balancer/balancer.js'
import type { Descriptors } from '../descriptors.js'
import type { Carrier, CarrierEvents, MovedCounts } from '../tcp/carrier.js'

/** What the connections of one thread share. */
export interface SpliceTools {
  readonly calls: TcpSyscalls
  readonly loop: EventLoop
  readonly pipes: Pipes
  readonly descriptors: Descriptors
}

const none = -1
const interest = EPOLLIN | EPOLLOUT | EPOLLRDHUP

/**
 * Two sockets as file descriptors; the kernel moves the bytes between them. Both are watched all the time, so a reset is noticed at
 * once, also while the other side does not read. States: *accepted*, *dialing*, *connected*, *carrying*, *ended*.
 */
export class SpliceCarrier implements Carrier, EventHandler {
  readonly #tools: SpliceTools
  readonly #events: CarrierEvents
  readonly clientPort: number
  #client: number
  #endpoint = none
  /** Set while it is dialing. */
  #dialed: EndpointAddress | undefined
  #counts: MovedCounts | undefined
  #toEndpoint: Direction | undefined
  #toClient: Direction | undefined
  /** Bytes may have come before `carry`. */
  #clientSpoke = false
  #endpointSpoke = false

  constructor(client: number, clientPort: number, tools: SpliceTools, events: CarrierEvents) {
    this.#client = client
    this.clientPort = clientPort
    this.#tools = tools
    this.#events = events
    this.#watch(client)
  }

  get isOpen(): boolean {
    return this.#client !== none
  }

  dial(endpoint: EndpointAddress): void {
    try {
      this.#endpoint = connectTcp(this.#tools.calls, endpoint)
    } catch (error) {
      this.#events.dialFailed(error as NodeJS.ErrnoException)
      return
    }
    this.#dialed = endpoint
    this.#watch(this.#endpoint)
  }

  stopDialing(): void {
    this.#dialed = undefined
    if (this.#endpoint !== none) this.#close(this.#endpoint, 'end')
    this.#endpoint = none
  }

  carry(counts: MovedCounts): void {
    this.#counts = counts
    this.#toEndpoint = new Direction(this.#client, this.#endpoint)
    this.#toClient = new Direction(this.#endpoint, this.#client)
    const { pipes } = this.#tools
    const more = this.#clientSpoke && this.#toEndpoint.pump(pipes)
    const moreBack = this.#endpointSpoke && this.#toClient.pump(pipes)
    this.#after(more || moreBack)
  }

  reset(): void {
    this.#end('reset')
  }

  addresses(): ReturnType<Carrier['addresses']> {
    const { calls } = this.#tools
    return {
      client: textOf(() => remoteAddress(calls, this.#client)),
      entrance: textOf(() => localAddress(calls, this.#client)),
      source: textOf(() => localAddress(calls, this.#endpoint)),
      endpoint: textOf(() => remoteAddress(calls, this.#endpoint)),
    }
  }

  onEvents(fd: number, events: number): void {
    if (this.#dialed && fd === this.#endpoint) this.#dialEnded(events)
    else if (events & EPOLLERR) this.#broken(fd)
    else if (!this.#counts) this.#clientSpoke ||= (events & ~EPOLLOUT) !== 0
    else if (fd === this.#client) this.#pump(this.#toEndpoint, this.#toClient)
    else this.#pump(this.#toClient, this.#toEndpoint)
  }

  #dialEnded(events: number): void {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) === 0) return
    const { calls } = this.#tools
    const endpoint = this.#dialed as EndpointAddress
    const errno = errorOf(calls, this.#endpoint)
    this.#dialed = undefined
    this.#endpointSpoke = (events & ~EPOLLOUT) !== 0
    if (errno === 0) {
      this.#events.connected()
      return
    }
    this.stopDialing()
    this.#events.dialFailed(systemError(calls, 'connect', endpoint, errno))
  }

  /** A socket was reset, or has timed out. What it had sent before that is passed on first. */
  #broken(fd: number): void {
    const { calls, pipes } = this.#tools
    const isClient = fd === this.#client
    const direction = isClient ? this.#toEndpoint : this.#toClient
    direction?.pump(pipes)
    const reason = direction?.failure ?? systemError(calls, 'read', undefined, errorOf(calls, fd)).message
    this.#events.failed(isClient ? 'client' : 'endpoint', reason)
    this.#end('reset')
  }

  /** A socket has news: more bytes came from it, or it takes more. */
  #pump(from: Direction | undefined, to: Direction | undefined): void {
    if (!from || !to) return
    const { pipes } = this.#tools
    const more = !from.isFull && from.pump(pipes)
    const moreBack = to.isFull && to.pump(pipes)
    this.#after(more || moreBack)
  }

  readonly #pumpBoth = (): void => {
    if (!this.#toEndpoint || !this.#toClient) return
    const { pipes } = this.#tools
    const more = this.#toEndpoint.pump(pipes)
    const moreBack = this.#toClient.pump(pipes)
    this.#after(more || moreBack)
  }

  #after(more: boolean): void {
    this.#count()
    const [toEndpoint, toClient] = [this.#toEndpoint as Direction, this.#toClient as Direction]
    if (toEndpoint.failure ?? toClient.failure) this.#fail(toEndpoint, toClient)
    else if (toEndpoint.hasEnded && toClient.hasEnded) this.#end('end')
    else if (more) this.#tools.loop.soon(this.#pumpBoth)
  }

  #fail(toEndpoint: Direction, toClient: Direction): void {
    const failed = toEndpoint.failure === undefined ? toClient : toEndpoint
    const isRead = failed.failure?.startsWith('read')
    const side = (failed === toEndpoint) === isRead ? 'client' : 'endpoint'
    this.#events.failed(side, failed.failure as string)
    this.#end('reset')
  }

  #count(): void {
    if (!this.#counts) return
    const { counters, moved } = this.#counts
    const [toEndpoint, toClient] = [this.#toEndpoint?.moved ?? 0, this.#toClient?.moved ?? 0]
    if (toEndpoint !== moved.toEndpoint) counters.bytesToEndpoint += toEndpoint - moved.toEndpoint
    if (toClient !== moved.toClient) counters.bytesToClient += toClient - moved.toClient
    moved.toEndpoint = toEndpoint
    moved.toClient = toClient
  }

  #end(how: 'end' | 'reset'): void {
    if (this.#client === none) return
    const [client, endpoint] = [this.#client, this.#endpoint]
    this.#count()
    this.#toEndpoint?.close(this.#tools.pipes)
    this.#toClient?.close(this.#tools.pipes)
    this.#client = none
    this.#endpoint = none
    this.#dialed = undefined
    this.#toEndpoint = undefined
    this.#toClient = undefined
    if (endpoint !== none) this.#close(endpoint, how)
    this.#close(client, how)
    this.#events.ended()
  }

  #watch(fd: number): void {
    this.#tools.descriptors.add(1)
    this.#tools.loop.addChanges(fd, interest, this)
  }

  #close(fd: number, how: 'end' | 'reset'): void {
    const { calls, loop, descriptors } = this.#tools
    loop.forget(fd)
    if (how === 'reset') resetAndClose(calls, fd)
    else calls.close(fd)
    descriptors.remove(1)
  }
}

/** A socket that was reset has no addresses any more. */
function textOf(address: () => SocketAddress): string {
  try {
    const { ip, port } = address()
    return hostPort(ip, port)
  } catch {
    return 'unknown'
  }
}
