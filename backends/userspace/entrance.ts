import { hostPort, parseIp } from './address.js'
import { ConnectionNotes } from './connection-record.js'
import type { PortalPlan, ServicePort } from './service-port.js'
import type { Surroundings } from './surroundings.js'
import { type EndpointAddress, type Scope, scopeOf } from './usable-endpoints.js'

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
  /** The newest plan of the portal. Its address never changes, its ranges and fates do. */
  plan: PortalPlan
  readonly #inside = new Set<ThroughAddress>()

  constructor(servicePort: ServicePort, plan: PortalPlan, surroundings: Surroundings) {
    this.servicePort = servicePort
    this.plan = plan
    this.surroundings = surroundings
  }

  admit(clientIp: string): Admission {
    const { portal, fates } = this.plan
    const { insiders } = this.surroundings
    const { sourceRanges, family, kind } = portal
    if (sourceRanges && !sourceRanges.has(clientIp, family)) {
      // A node's packets to a virtual IP that it holds itself come from that IP; the node being in the ranges lets them in.
      const ownAllowed = insiders.isOwn(clientIp, family) && insiders.anyOwnIn(sourceRanges, family)
      if (!ownAllowed) return { admitted: false, reason: 'source-ranges' }
    }
    const inside = insiders.isInside(clientIp, family)
    const fate = inside ? fates.inside : fates.outside
    if (fate === 'forward') return { admitted: true, scope: scopeOf(kind, inside) }
    return { admitted: false, reason: fate === 'drop' ? 'no-local-endpoint' : 'no-endpoint' }
  }

  /** A connection came in; what is returned is called when it is over. */
  entered(connection: ThroughAddress): () => void {
    this.#inside.add(connection)
    return () => void this.#inside.delete(connection)
  }

  /** The address is no longer the service's. */
  addressGone(): void {
    for (const connection of [...this.#inside]) connection.addressGone()
  }

  /** The notes on a connection that begins now, when somebody wants to be told about it. */
  notes(clientIp: string, clientPort: number): ConnectionNotes | undefined {
    const { onConnection } = this.surroundings
    return onConnection && new ConnectionNotes(onConnection, this.servicePort.name, hostPort(clientIp, clientPort))
  }

  /** The endpoint for a client, past those that it failed at already. Undefined: there is none. */
  nextEndpoint(scope: Scope, clientIp: string, clientPort: number, tried: Set<string>): EndpointAddress | undefined {
    const { log } = this.surroundings
    const balancer = this.servicePort.balancers[this.plan.portal.family]
    if (log.shows(4)) {
      log.detail(4, 'NextEndpoint for service', {
        servicePortName: this.servicePort.name,
        address: `${clientIp}:${clientPort}`,
        endpoints: balancer.endpointKeys(scope),
      })
    }
    for (let attempts = 0; attempts < maxOwnSockets; attempts++) {
      const endpoint = balancer.next(scope, clientIp, tried)
      if (!endpoint || !this.#isThisProxy(endpoint)) {
        if (endpoint)
          log.detail(3, 'Mapped service to endpoint', { service: this.servicePort.name, endpoint: endpoint.key })
        return endpoint
      }
      this.servicePort.warn('An endpoint is this proxy itself and is not used: it would connect in circles', {
        endpoint: endpoint.key,
      })
      if (tried.has(endpoint.key)) return undefined
      tried.add(endpoint.key)
    }
    return undefined
  }

  #isThisProxy({ ip, port }: EndpointAddress): boolean {
    const { family, protocol } = this.plan.portal
    const { ownSockets, insiders } = this.surroundings
    return ownSockets.has(ip, family, port, protocol, insiders.isOwn(ip, family))
  }
}

/** More endpoints than this that are this proxy itself are not passed over for one client. */
const maxOwnSockets = 100

/** A client's address as the system gives it, in canonical form. */
export const clientIpOf = (address: string | undefined): string | undefined =>
  address === undefined ? undefined : parseIp(address.split('%')[0] as string)?.ip
