import type { LogFields, localv1 } from '@kpng/api'
import type { ServiceEndpoints } from '@kpng/client'
import type { Family } from './address.js'
import { Balancer, type EndpointChanges } from './balancer/balancer.js'
import type { ServicePortCounters } from './counters.js'
import { Flows } from './flows.js'
import { type Portal, portalsOfPort } from './portal.js'
import { refusalOf } from './refused-address.js'
import type { Surroundings } from './surroundings.js'
import { endpointsByScope, type Fates, fatesOf } from './usable-endpoints.js'

/** A portal and what becomes of its clients. */
export interface PortalPlan {
  readonly portal: Portal
  readonly fates: Fates
}

/** A service that fails does so for every client: one line in this time says enough. */
const warnEveryMs = 10_000

/** One port of a service: its balancers, its open connections, its counters. Lives as long as the port keeps its name. */
export class ServicePort {
  readonly name: string
  readonly balancers: Readonly<Record<Family, Balancer>>
  readonly flows = new Flows()
  readonly counters: ServicePortCounters
  readonly #surroundings: Surroundings
  #refused = ''
  #warnedMs = Number.NEGATIVE_INFINITY

  constructor(name: string, surroundings: Surroundings) {
    this.name = name
    this.#surroundings = surroundings
    this.counters = surroundings.counters.add(name)
    this.balancers = { v4: new Balancer(surroundings.clock), v6: new Balancer(surroundings.clock) }
  }

  /** Takes the newest state. Connections to endpoints that are gone begin to drain; nothing else is disturbed. */
  update(service: ServiceEndpoints, port: localv1.PortMapping): PortalPlan[] {
    const { log, allowLoopbackEndpoints, externalIps } = this.#surroundings
    const affinity = service.service.sessionAffinity
    const affinitySeconds = affinity.case === 'clientIp' ? affinity.value.timeoutSeconds : undefined
    const refused: string[] = []
    const scoped = (family: Family) =>
      endpointsByScope(service, port, family, (ip) => {
        const refusal = refusalOf(ip, family, allowLoopbackEndpoints)
        if (refusal) refused.push(`${ip} (${refusal})`)
        return refusal
      })
    const endpoints = { v4: scoped('v4'), v6: scoped('v6') }
    this.#reportRefused(refused)
    for (const family of ['v4', 'v6'] as const) {
      this.#tellFlows(this.balancers[family].set(endpoints[family], affinitySeconds))
    }
    const portals = portalsOfPort(service.service, port, log).filter(
      ({ kind }) => externalIps || kind !== 'external-ip',
    )
    return portals.map((portal) => ({
      portal,
      fates: fatesOf(service.service, port, portal.family, portal.kind, endpoints[portal.family]),
    }))
  }

  /** Warns, but not for each of many clients; the others are told at -v 2. */
  warn(message: string, fields: LogFields): void {
    const { log, clock } = this.#surroundings
    const now = clock.now()
    const due = now - this.#warnedMs >= warnEveryMs
    if (due) this.#warnedMs = now
    if (due) log.warn(message, { service: this.name, ...fields })
    else log.detail(2, message, { service: this.name, ...fields })
  }

  /** The service port is no more. Its connections drain like those to an endpoint that is gone. */
  remove(): void {
    this.#surroundings.counters.remove(this.name)
    const none = { internal: [], external: [], cluster: [] }
    for (const balancer of Object.values(this.balancers)) balancer.set(none, undefined)
    this.flows.allGone()
  }

  #tellFlows({ gone, forbidden, added }: EndpointChanges): void {
    this.flows.endpointsBack(added)
    for (const scope of ['internal', 'external', 'cluster'] as const)
      this.flows.endpointsForbidden(forbidden[scope], scope)
    if (gone.size === 0) return
    this.#surroundings.log.detail(2, 'Deleted endpoints of service', {
      servicePortName: this.name,
      endpoints: [...gone],
    })
    this.flows.endpointsGone(gone)
  }

  #reportRefused(refused: readonly string[]): void {
    const text = refused.join(', ')
    if (text !== '' && text !== this.#refused) {
      this.#surroundings.log.warn('Endpoints are not used: the proxy never connects to such addresses', {
        servicePortName: this.name,
        endpoints: refused,
      })
    }
    this.#refused = text
  }
}
