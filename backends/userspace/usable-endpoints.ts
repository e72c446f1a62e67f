import type { localv1 } from '@kpng/api'
import { endpointsOfPort, type ServiceEndpoints } from '@kpng/client'
import { type Family, hostPort, parseIp } from './address.js'
import type { PortalKind } from './portal.js'

/** Which traffic: to cluster IPs; from outside; from pods and this node to addresses meant for the outside. */
export type Scope = 'internal' | 'external' | 'cluster'

export interface EndpointAddress {
  readonly ip: string
  readonly port: number
  /** `10.1.0.5:8080`. */
  readonly key: string
}

export type ScopedEndpoints = Readonly<Record<Scope, readonly EndpointAddress[]>>

/** Why an endpoint's address is not used, or undefined when it may be. */
export type Refuse = (ip: string, family: Family) => string | undefined

/** The endpoints that one port of a service has for each kind of traffic, in one family. */
export function endpointsByScope(
  service: ServiceEndpoints,
  port: localv1.PortMapping,
  family: Family,
  refuse: Refuse,
): ScopedEndpoints {
  const lists = { internal: [], external: [], cluster: [] } as Record<Scope, EndpointAddress[]>
  for (const { endpoint, port: number, scopes } of endpointsOfPort(service, port)) {
    for (const text of endpoint.ips?.[family] ?? []) {
      const address = parseIp(text)
      if (address?.family !== family || refuse(address.ip, family) !== undefined) continue
      const usable = { ip: address.ip, port: number, key: hostPort(address.ip, number) }
      // A server that does not know scopes means all of them.
      if (scopes?.internal ?? true) lists.internal.push(usable)
      if (scopes?.external ?? true) lists.external.push(usable)
      if (scopes?.cluster ?? true) lists.cluster.push(usable)
    }
  }
  // Go kpng's server does not send `cluster`. Where ours does, it is never empty while `external` is not.
  return lists.cluster.length === 0 ? { ...lists, cluster: lists.external } : lists
}

/** What happens to a client's new connection. `drop` is "none here", `refuse` is "none anywhere". */
export type Fate = 'forward' | 'refuse' | 'drop'

/** The fate of clients inside (pods, this node) and outside the cluster. */
export interface Fates {
  readonly inside: Fate
  readonly outside: Fate
}

export const scopeOf = (kind: PortalKind, inside: boolean): Scope =>
  kind === 'cluster-ip' ? 'internal' : inside ? 'cluster' : 'external'

/** What becomes of clients of a portal, given the endpoints that there are. */
export function fatesOf(
  { internalTrafficToLocal, externalTrafficToLocal }: localv1.Service,
  port: localv1.PortMapping,
  family: Family,
  kind: PortalKind,
  endpoints: ScopedEndpoints,
): Fates {
  const anywhere = port.hasEndpoints?.[family] ?? Object.values(endpoints).some((list) => list.length > 0)
  const fate = (scope: Scope): Fate => {
    if (endpoints[scope].length > 0) return 'forward'
    const local = scope === 'internal' ? internalTrafficToLocal : scope === 'external' && externalTrafficToLocal
    return local && anywhere ? 'drop' : 'refuse'
  }
  return { inside: fate(scopeOf(kind, true)), outside: fate(scopeOf(kind, false)) }
}
