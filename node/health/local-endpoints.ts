import { families as allFamilies, type Family, ipsOf, type localv1 } from '@kpng/api'
import type { ServiceEndpoints } from '@kpng/client'

/** What a health-check node port is to answer. */
export interface HealthCheck {
  readonly namespace: string
  readonly name: string
  readonly port: number
  /** The families that the service has cluster IPs of: kube-proxy's proxier of the other one does not know it. */
  readonly families: readonly Family[]
  /** Endpoints on this node that are ready, by their distinct addresses. */
  readonly localEndpoints: { readonly [family in Family]: number }
}

/** The health check of a service, or undefined when it has none. */
export function healthCheckOf({ service, endpoints }: ServiceEndpoints): HealthCheck | undefined {
  const { namespace, name, healthCheckNodePort: port, externalTrafficToLocal } = service
  if (port <= 0 || !externalTrafficToLocal) return undefined
  const clusterIps = service.ips?.clusterIps
  const families = allFamilies.filter((family) => ipsOf(clusterIps, family).length > 0)
  return {
    namespace,
    name,
    port,
    families: families.length > 0 ? families : allFamilies,
    localEndpoints: { IPv4: localReady(endpoints, 'IPv4'), IPv6: localReady(endpoints, 'IPv6') },
  }
}

function localReady(endpoints: readonly localv1.Endpoint[], family: Family): number {
  const ips = new Set<string>()
  for (const { local, conditions, ips: own } of endpoints) {
    // A terminating endpoint may still be used, but no new traffic should be drawn to this node for its sake.
    if (local && (conditions?.ready ?? true)) for (const ip of ipsOf(own, family)) ips.add(ip)
  }
  return ips.size
}
