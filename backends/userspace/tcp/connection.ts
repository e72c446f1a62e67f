import { connect, type Socket } from 'node:net'
import { hostPort } from '../address.js'
import { isOutOfDescriptors } from '../descriptors.js'
import type { Entrance } from '../entrance.js'
import type { Flow } from '../flows.js'
import type { EndpointAddress, Scope } from '../usable-endpoints.js'

/**
 * One client's TCP connection. States: *dialing* an endpoint, and the next one when that fails; *waiting* for a file
 * descriptor to dial with; *copying*; *draining*: copying, but its endpoint is gone; *ended*.
 */
export class TcpConnection implements Flow {
  readonly #entrance: Entrance
  readonly #client: Socket
  readonly #clientIp: string
  readonly #scope: Scope
  readonly #tried = new Set<string>()
  #attempts = 0
  #endpoint: EndpointAddress | undefined
  #out: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #copying = false

  constructor(entrance: Entrance, client: Socket, clientIp: string, scope: Scope) {
    this.#entrance = entrance
    this.#client = client
    this.#clientIp = clientIp
    this.#scope = scope
  }

  start(): void {
    this.#client.on('error', ignore)
    this.#client.once('close', this.#clientClosed)
    this.#dialNext()
  }

  endpointGone(): void {
    const { drainMs } = this.#entrance.surroundings
    // Node's timers hold 24.8 days at most; whoever drains longer than that means for ever.
    if (drainMs > 2 ** 31 - 1) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.abort(), drainMs)
    this.#timer.unref()
  }

  abort(): void {
    this.#client.resetAndDestroy()
    this.#out?.resetAndDestroy()
  }

  #dialNext(): void {
    if (this.#client.destroyed) return
    const { surroundings } = this.#entrance
    if (surroundings.descriptors.usedUp) return this.#waitForDescriptor()
    const timeoutMs = surroundings.dialTimeoutsMs[this.#attempts++]
    if (timeoutMs === undefined) return this.#giveUp('every endpoint that was tried failed')
    const endpoint = this.#entrance.nextEndpoint(this.#scope, this.#clientIp, this.#client.remotePort ?? 0, this.#tried)
    if (!endpoint) return this.#giveUp('there is no endpoint')
    this.#endpoint = endpoint
    this.#dial(endpoint, timeoutMs)
  }

  #dial(endpoint: EndpointAddress, timeoutMs: number): void {
    const out = connect({ host: endpoint.ip, port: endpoint.port, allowHalfOpen: true, noDelay: true })
    this.#out = out
    const failed = (error: NodeJS.ErrnoException) => {
      clearTimeout(this.#timer)
      out.off('connect', connected)
      out.on('error', ignore)
      out.destroy()
      this.#dialFailed(endpoint, error)
    }
    const connected = () => {
      clearTimeout(this.#timer)
      out.off('error', failed)
      out.on('error', ignore)
      this.#connected(endpoint, out)
    }
    this.#timer = setTimeout(() => {
      out.off('error', failed)
      failed(Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    }, timeoutMs)
    out.once('error', failed)
    out.once('connect', connected)
  }

  #dialFailed(endpoint: EndpointAddress, error: NodeJS.ErrnoException): void {
    if (this.#client.destroyed) return
    const { servicePort, surroundings } = this.#entrance
    if (isOutOfDescriptors(error)) {
      surroundings.descriptors.report(error)
      this.#attempts--
      return this.#waitForDescriptor()
    }
    servicePort.counters.dialFailures++
    surroundings.log.detail(2, 'Dial failed', {
      service: servicePort.name,
      endpoint: endpoint.key,
      error: error.message,
    })
    this.#tried.add(endpoint.key)
    this.#dialNext()
  }

  #connected(endpoint: EndpointAddress, out: Socket): void {
    const { servicePort, surroundings, plan } = this.#entrance
    if (this.#client.destroyed) return void out.destroy()
    // The endpoint may have been removed while it was dialed; nothing was sent yet, so another one can have this client.
    if (!servicePort.balancers[plan.portal.family].has(endpoint.key)) {
      out.destroy()
      this.#attempts--
      return this.#dialNext()
    }
    this.#client.off('close', this.#clientClosed)
    this.#copying = true
    servicePort.flows.add(endpoint.key, this)
    servicePort.counters.connections++
    servicePort.counters.active++
    if (surroundings.log.shows(4)) this.#logStart(out)
    const addresses = surroundings.log.shows(4) ? [remoteOf(this.#client), remoteOf(out)] : undefined
    surroundings.byteMover.move({ client: this.#client, endpoint: out, counters: servicePort.counters }, (moved) => {
      clearTimeout(this.#timer)
      servicePort.flows.remove(endpoint.key, this)
      servicePort.counters.active--
      if (addresses) this.#logEnd(moved.toEndpoint, moved.toClient, addresses)
      surroundings.descriptors.released()
    })
  }

  readonly #clientClosed = () => {
    if (this.#copying) return
    clearTimeout(this.#timer)
    this.#out?.destroy()
    this.#entrance.surroundings.descriptors.released()
  }

  #waitForDescriptor(): void {
    this.#entrance.surroundings.descriptors.wait(
      () => this.#resume(),
      () => this.#giveUp('no file descriptor became free in time'),
    )
  }

  #resume(): void {
    // A client that went away while it waited must not take the turn of the next one.
    if (this.#client.destroyed) return this.#entrance.surroundings.descriptors.released()
    const timeoutMs = this.#entrance.surroundings.dialTimeoutsMs[this.#attempts] ?? 0
    const { remotePort = 0 } = this.#client
    const endpoint = this.#entrance.nextEndpoint(this.#scope, this.#clientIp, remotePort, this.#tried)
    if (!endpoint) return this.#giveUp('there is no endpoint')
    this.#attempts++
    this.#endpoint = endpoint
    this.#dial(endpoint, timeoutMs)
  }

  #giveUp(reason: string): void {
    const { servicePort, surroundings } = this.#entrance
    if (this.#client.destroyed) return
    servicePort.counters.failures++
    surroundings.log.detail(1, 'Failed to connect to balancer', {
      service: servicePort.name,
      remoteAddress: remoteOf(this.#client),
      lastEndpoint: this.#endpoint?.key,
      reason,
    })
    this.#client.resetAndDestroy()
  }

  #logStart(out: Socket): void {
    const { log } = this.#entrance.surroundings
    const [client, endpoint] = [remoteOf(this.#client), remoteOf(out)]
    log.detail(4, 'Creating proxy between remote and local addresses', {
      inRemoteAddress: client,
      inLocalAddress: localOf(this.#client),
      outLocalAddress: localOf(out),
      outRemoteAddress: endpoint,
    })
    for (const [direction, source, destination] of [
      ['from backend', endpoint, client],
      ['to backend', client, endpoint],
    ]) {
      const addresses = { sourceRemoteAddress: source, destinationRemoteAddress: destination }
      log.detail(4, 'Copying remote address bytes', { direction, ...addresses })
    }
  }

  #logEnd(toEndpoint: number, toClient: number, [client, endpoint]: readonly string[]): void {
    const { log } = this.#entrance.surroundings
    for (const [bytes, direction, source, destination] of [
      [toEndpoint, 'to backend', client, endpoint],
      [toClient, 'from backend', endpoint, client],
    ]) {
      const addresses = { sourceRemoteAddress: source, destinationRemoteAddress: destination }
      log.detail(4, 'Copied remote address bytes', { bytes, direction, ...addresses })
    }
  }
}

const ignore = () => {}

const remoteOf = ({ remoteAddress, remotePort }: Socket): string =>
  hostPort(remoteAddress ?? 'unknown', remotePort ?? 0)
const localOf = ({ localAddress, localPort }: Socket): string => hostPort(localAddress ?? 'unknown', localPort ?? 0)
