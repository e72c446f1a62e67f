import { type Family, ipsOf, localv1 } from '@kpng/api'
import type { Protocol, ServiceEndpoints } from './backend.js'

/** For which traffic an endpoint may be used on this node. Traffic policies, topology hints and readiness have been applied. */
export interface Scopes {
  /** Traffic to the cluster IPs. */
  readonly internal: boolean
  /** Traffic from outside the cluster to node ports, external IPs and load-balancer IPs. */
  readonly external: boolean
  /** Traffic of pods and of this node to node ports, external IPs and load-balancer IPs. A server of Go kpng never sets it. */
  readonly cluster: boolean
}

/** An endpoint as it serves one port of its Service. */
export interface PortEndpoint {
  /** The endpoint with its addresses. Shared with the view: do not change it. */
  readonly endpoint: localv1.Endpoint
  /** The port number on the endpoint, 1-65535 unless the source is wrong. */
  readonly port: number
  /** For which traffic it may be used. All false: it gets no new connections, but those it has may stay. */
  readonly scopes: Scopes
}

/**
 * The endpoints that serve a port of a Service. The number may differ from endpoint to endpoint, and an endpoint that does not
 * have the port is left out. A port with the same name and another protocol is another port.
 */
export function endpointsOfPort({ service, endpoints }: ServiceEndpoints, port: localv1.PortMapping): PortEndpoint[] {
  const serving: PortEndpoint[] = []
  // The endpoints of a slice share the list of its ports, so it is searched once.
  let listed: localv1.Endpoint['portOverrides'] | undefined
  let own: localv1.PortName | undefined
  for (const endpoint of endpoints) {
    if (endpoint.portOverrides.length === 0) {
      if (port.targetPort > 0) serving.push({ endpoint, port: port.targetPort, scopes: scopesOf(service, endpoint) })
      continue
    }
    // An endpoint that lists ports serves those and no others.
    if (endpoint.portOverrides !== listed) {
      listed = endpoint.portOverrides
      own = listed.find(({ name, protocol = port.protocol }) => name === port.name && protocol === port.protocol)
    }
    if (own && own.port > 0) {
      serving.push({ endpoint, port: own.port, scopes: own.scopes ?? scopesOf(service, endpoint) })
    }
  }
  return serving
}

/** For which traffic an endpoint may be used, whatever the port. If the server did not say, the traffic policies are applied here. */
export const scopesOf = (service: localv1.Service, { scopes, local }: localv1.Endpoint): Scopes =>
  scopes ?? {
    internal: local || !service.internalTrafficToLocal,
    external: local || !service.externalTrafficToLocal,
    cluster: true,
  }

/**
 * Whether any endpoint in the whole cluster serves a port in one address family. It decides what to do with traffic for which
 * this node has no endpoint: false, refuse the connection; true, drop it, because the traffic policy keeps it on this node.
 */
export function hasEndpoints(item: ServiceEndpoints, port: localv1.PortMapping, family: Family): boolean {
  const served = port.servedFamilies
  if (served) return family === 'IPv4' ? served.v4 : served.v6
  // Servers of Go kpng do not say. Then only this node's own endpoints are known.
  return endpointsOfPort(item, port).some(({ endpoint }) => ipsOf(endpoint.ips, family).length > 0)
}

const protocols = new Map<localv1.Protocol, Protocol>([
  [localv1.Protocol.TCP, 'tcp'],
  [localv1.Protocol.UDP, 'udp'],
  [localv1.Protocol.SCTP, 'sctp'],
])

/** The protocol of a port by name. Undefined: one that this version of kpng does not know; skip the port. */
export const protocolOf = ({ protocol }: Pick<localv1.PortMapping, 'protocol'>): Protocol | undefined =>
  protocols.get(protocol)
