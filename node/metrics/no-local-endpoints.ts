import { type Family, families, ipsOf } from '@kpng/api'
import { type Changes, endpointsOfPort, type NodeView, type ServiceEndpoints } from '@kpng/client'

export type TrafficPolicy = 'internal' | 'external'

export const trafficPolicies: readonly TrafficPolicy[] = ['internal', 'external']

/** Service ports with a Local policy whose traffic is dropped here, by policy and family. */
export type NoLocalEndpoints = { readonly [key in `${TrafficPolicy}/${Family}`]: number }

const zero: NoLocalEndpoints = { 'internal/IPv4': 0, 'internal/IPv6': 0, 'external/IPv4': 0, 'external/IPv6': 0 }
const keys = Object.keys(zero) as (keyof NoLocalEndpoints)[]

/**
 * The ports of a service that have endpoints somewhere, but none that the Local policy allows here. Those with none anywhere are not
 * counted (they are refused, not dropped); where the server cannot tell, they are.
 */
export function noLocalEndpointsOf(item: ServiceEndpoints): NoLocalEndpoints {
  const { service } = item
  const localPolicies = { internal: service.internalTrafficToLocal, external: service.externalTrafficToLocal }
  if (!localPolicies.internal && !localPolicies.external) return zero
  const counts = { ...zero }
  for (const port of service.ports) {
    const serving = endpointsOfPort(item, port)
    for (const family of families) {
      if (ipsOf(service.ips?.clusterIps, family).length === 0) continue
      const anywhere = port.hasEndpoints ? port.hasEndpoints[family === 'IPv4' ? 'v4' : 'v6'] : true
      for (const policy of trafficPolicies) {
        if (!localPolicies[policy] || !anywhere) continue
        const usable = serving.some(
          ({ endpoint, scopes }) => scopes?.[policy] && ipsOf(endpoint.ips, family).length > 0,
        )
        if (!usable) counts[`${policy}/${family}`]++
      }
    }
  }
  return counts
}

/** Keeps the totals up to date at the cost of what changed: the services that count are remembered, the others are not. */
export class NoLocalEndpointsTotal {
  readonly #byService = new Map<string, NoLocalEndpoints>()
  #total: NoLocalEndpoints = zero
  #started = false

  get total(): NoLocalEndpoints {
    return this.#total
  }

  observe(view: NodeView, changes: Changes): void {
    if (this.#started) for (const [path, { after }] of changes.services) this.#set(path, after)
    else for (const [path, service] of view.services) this.#set(path, service)
    this.#started = true
  }

  #set(path: string, service: ServiceEndpoints | undefined): void {
    const before = this.#byService.get(path) ?? zero
    const after = service ? noLocalEndpointsOf(service) : zero
    if (before === zero && after === zero) return
    const total = { ...this.#total }
    for (const key of keys) total[key] += after[key] - before[key]
    this.#total = total
    if (keys.some((key) => after[key] > 0)) this.#byService.set(path, after)
    else this.#byService.delete(path)
  }
}
