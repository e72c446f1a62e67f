import { type Family, families, ipsOf, parseIp } from '@kpng/api'
import type { ServiceEndpoints } from '@kpng/client'
import type { Frontend } from '@kpng/dataplane'

/** What a health-check node port is to answer. */
export interface HealthCheck {
  readonly namespace: string
  readonly name: string
  readonly port: number
  /** The families in which the Service is served. */
  readonly families: readonly Family[]
  /** How many ready endpoints on this node serve it, by their distinct addresses. */
  readonly localEndpoints: Readonly<Record<Family, number>>
}

/**
 * The health check of a Service, or undefined if it has none.
 * @param frontends what the Service asks for on this node
 */
export function healthCheckOf(
  item: ServiceEndpoints | undefined,
  frontends: readonly Frontend[],
): HealthCheck | undefined {
  if (!item || item.service.healthCheckNodePort <= 0 || !item.service.externalTrafficToLocal) return undefined
  const { namespace, name, healthCheckNodePort: port } = item.service
  const ready = readyIps(item)
  const count = (family: Family) => localIps(frontends, family).filter((ip) => ready.has(ip)).length
  return {
    namespace,
    name,
    port,
    families: families.filter((family) => frontends.some((frontend) => frontend.family === family)),
    localEndpoints: { IPv4: count('IPv4'), IPv6: count('IPv6') },
  }
}

function localIps(frontends: readonly Frontend[], family: Family): string[] {
  const own = frontends.filter((frontend) => frontend.family === family)
  const endpoints = own.flatMap(({ inside, outside }) => [...inside.endpoints, ...outside.endpoints])
  return [...new Set(endpoints.filter(({ isLocal }) => isLocal).map(({ ip }) => ip))]
}

/** A terminating endpoint may still be used, but no new traffic should be drawn to this node for its sake. */
function readyIps({ endpoints }: ServiceEndpoints): Set<string> {
  const ready = endpoints.filter(({ conditions }) => conditions?.ready ?? true)
  const texts = ready.flatMap(({ ips }) => families.flatMap((family) => ipsOf(ips, family)))
  return new Set(texts.flatMap((text) => parseIp(text)?.text ?? []))
}
