import { type Family, families, type LogFields } from '@kpng/api'
import { type Audience, endpointKey } from '@kpng/dataplane'
import { Balancer, type EndpointAddress, type EndpointChanges, scopes } from './balancer/balancer.js'
import type { ServicePortCounters } from './counters.js'
import { Flows } from './flows.js'
import type { Portal } from './portal.js'
import type { Surroundings } from './surroundings.js'

/** A service that fails does so for every client: one line in this time says enough. */
const warnEveryMs = 10_000

/** One port of a Service: its portals, balancers, open connections and counters. Lives as long as it has a portal. */
export class ServicePort {
  readonly name: string
  /** By frontend id. `refresh` is called after changes. */
  readonly portals = new Map<string, Portal>()
  readonly balancers: Readonly<Record<Family, Balancer>>
  readonly flows = new Flows()
  readonly counters: ServicePortCounters
  readonly #surroundings: Surroundings
  #warnedMs = Number.NEGATIVE_INFINITY

  constructor(name: string, surroundings: Surroundings) {
    this.name = name
    this.#surroundings = surroundings
    this.counters = surroundings.counters.add(name)
    this.balancers = { IPv4: new Balancer(surroundings.clock), IPv6: new Balancer(surroundings.clock) }
  }

  /** Gives the balancers what the portals say. Connections to endpoints that are gone begin to drain; nothing else is disturbed. */
  refresh(): void {
    for (const family of families) {
      const portals = [...this.portals.values()].filter((portal) => portal.family === family)
      const clusterIp = portals.find(({ kind }) => kind === 'clusterIP')
      const other = portals.find(({ kind }) => kind !== 'clusterIP')
      const endpoints = {
        internal: addressesOf(clusterIp?.inside),
        cluster: addressesOf(other?.inside),
        external: addressesOf(other?.outside),
      }
      const { draining = [], sessionAffinitySeconds } = clusterIp ?? other ?? {}
      this.#tellFlows(this.balancers[family].set(endpoints, sessionAffinitySeconds, draining.map(endpointKey)))
    }
  }

  /** The service port does not exist any more. Its connections drain like those to an endpoint that is gone. */
  remove(): void {
    this.#surroundings.counters.remove(this.name)
    this.refresh()
    this.flows.allGone()
  }

  /** Warns, but not for each of many clients; the others are logged at -v 2. */
  warn(message: string, fields: LogFields): void {
    const { log, clock } = this.#surroundings
    const now = clock.now()
    const due = now - this.#warnedMs >= warnEveryMs
    if (due) this.#warnedMs = now
    if (due) log.warn(message, { service: this.name, ...fields })
    else log.detail(2, message, { service: this.name, ...fields })
  }

  #tellFlows({ gone, forbidden, added }: EndpointChanges): void {
    this.flows.endpointsBack(added)
    for (const scope of scopes) this.flows.endpointsForbidden(forbidden[scope], scope)
    if (gone.size === 0) return
    this.#surroundings.log.detail(2, 'Deleted endpoints of service', {
      servicePortName: this.name,
      endpoints: [...gone],
    })
    this.flows.endpointsGone(gone)
  }
}

const addressesOf = (audience: Audience | undefined): EndpointAddress[] =>
  (audience?.endpoints ?? []).map((endpoint) => ({ ip: endpoint.ip, port: endpoint.port, key: endpointKey(endpoint) }))
