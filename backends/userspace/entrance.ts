import { CidrSet, hostPort, parseIp } from '@kpng/api'
import type { HeldFrontend } from '@kpng/client'
import type { Balancer, EndpointAddress, Scope } from './balancer/balancer.js'
import { ConnectionNotes } from './connection-record.js'
import type { Portal } from './portal.js'
import type { ServicePort } from './service-port.js'
import type { Surroundings } from './surroundings.js'

export type Admission =
  | { readonly admitted: true; readonly scope: Scope }
  | { readonly admitted: false; readonly reason: 'source-ranges' | 'no-endpoint' | 'no-local-endpoint' }

/** A connection that depends on the address that it came in by. */
export interface ThroughAddress {
  addressGone(): void
}

/** What a portal's proxy socket asks about each client: may it come in, and where does it go? */
export class Entrance {
  readonly servicePort: ServicePort
  readonly surroundings: Surroundings
  #portal: Portal
  #allowed: CidrSet | undefined
  #connections = 0
  readonly #inside = new Set<ThroughAddress>()

  constructor(servicePort: ServicePort, portal: Portal, surroundings: Surroundings) {
    this.servicePort = servicePort
    this.surroundings = surroundings
    this.#portal = portal
    this.portal = portal
  }

  /** As it is now. Its address never changes; its endpoints and source ranges do. */
  get portal(): Portal {
    return this.#portal
  }

  set portal(portal: Portal) {
    this.#portal = portal
    this.#allowed = portal.allowedSources && new CidrSet(portal.allowedSources)
  }

  get balancer(): Balancer {
    return this.servicePort.balancers[this.#portal.family]
  }

  admit(clientIp: string): Admission {
    if (this.#allowed && !this.#allowed.has(clientIp)) return { admitted: false, reason: 'source-ranges' }
    const isInside = this.surroundings.insiders.isInside(clientIp)
    const { endpoints, otherwise } = isInside ? this.#portal.inside : this.#portal.outside
    if (endpoints.length > 0) return { admitted: true, scope: this.#scope(isInside) }
    return { admitted: false, reason: otherwise === 'drop' ? 'no-local-endpoint' : 'no-endpoint' }
  }

  /** A connection came in. */
  enter(connection: ThroughAddress): void {
    this.#inside.add(connection)
  }

  /** It is over. */
  leave(connection: ThroughAddress): void {
    this.#inside.delete(connection)
  }

  /** A connection has an endpoint. */
  countConnection(): void {
    this.#connections++
    this.servicePort.counters.connections++
    this.servicePort.counters.active++
  }

  /** The address is no longer the service's. */
  addressGone(): void {
    for (const connection of [...this.#inside]) connection.addressGone()
  }

  held(): HeldFrontend {
    const { outside, sessionAffinitySeconds } = this.#portal
    const [inner, outer] = [this.#scope(true), this.#scope(false)]
    const sessions = () => [...new Set([inner, outer])].flatMap((scope) => this.balancer.sessions(scope))
    return {
      inside: this.balancer.endpointKeys(inner),
      outside: this.balancer.endpointKeys(outer),
      otherwise: outside.otherwise,
      connections: this.#connections,
      ...(sessionAffinitySeconds === undefined ? {} : { sessionAffinity: sessions() }),
    }
  }

  /** The notes on a connection that begins now, if somebody wants to be told about it. */
  notes(clientIp: string, clientPort: number): ConnectionNotes | undefined {
    const { listener } = this.surroundings.observations
    return listener.connectionEnded
      ? new ConnectionNotes(listener, this.servicePort.name, hostPort(clientIp, clientPort))
      : undefined
  }

  /** The endpoint for a client, past those that it failed at already. Undefined: there is none. */
  nextEndpoint(
    scope: Scope,
    clientIp: string,
    clientPort: number,
    failed?: ReadonlySet<string>,
  ): EndpointAddress | undefined {
    const { log } = this.surroundings
    let tried = failed
    if (log.shows(4)) {
      log.detail(4, 'NextEndpoint for service', {
        servicePortName: this.servicePort.name,
        address: `${clientIp}:${clientPort}`,
        endpoints: this.balancer.endpointKeys(scope),
      })
    }
    for (let attempts = 0; attempts < maxOwnSockets; attempts++) {
      const endpoint = this.balancer.next(scope, clientIp, tried)
      if (!endpoint || !this.#isThisProxy(endpoint)) {
        if (endpoint)
          log.detail(3, 'Mapped service to endpoint', { service: this.servicePort.name, endpoint: endpoint.key })
        return endpoint
      }
      this.servicePort.warn('An endpoint is this proxy itself and is not used: it would connect in circles', {
        endpoint: endpoint.key,
      })
      if (tried?.has(endpoint.key)) return undefined
      tried = new Set([...(tried ?? []), endpoint.key])
    }
    return undefined
  }

  #scope(isInside: boolean): Scope {
    return this.#portal.kind === 'clusterIP' ? 'internal' : isInside ? 'cluster' : 'external'
  }

  #isThisProxy(endpoint: EndpointAddress): boolean {
    const { ownSockets, insiders } = this.surroundings
    return ownSockets.has(endpoint, this.#portal, insiders.isOwn(endpoint.ip))
  }
}

/** More endpoints than this that are this proxy itself are not passed over for one client. */
const maxOwnSockets = 100

/** A client's address as the system gives it, in canonical form. */
export const clientIpOf = (address: string | undefined): string | undefined =>
  address === undefined ? undefined : parseIp(address.split('%')[0] as string)?.text
