import type { localv1 } from '@kpng/api'
import type { ServiceEndpoints } from './backend.js'

/** An endpoint as it serves one port of its service. */
export interface PortEndpoint {
  readonly endpoint: localv1.Endpoint
  /** The port number on the endpoint. */
  readonly port: number
  /** For which traffic it may be used. */
  readonly scopes: localv1.EndpointScopes | undefined
}

/**
 * The endpoints that serve a port of a service. The number may differ from endpoint to endpoint, and an endpoint that does not
 * have the port is not there. A port of the same name and another protocol is another port.
 */
export function endpointsOfPort({ endpoints }: ServiceEndpoints, port: localv1.PortMapping): PortEndpoint[] {
  const serving: PortEndpoint[] = []
  for (const endpoint of endpoints) {
    if (endpoint.portOverrides.length === 0) {
      if (port.targetPort > 0) serving.push({ endpoint, port: port.targetPort, scopes: endpoint.scopes })
      continue
    }
    // An endpoint that lists ports serves those and no others.
    const own = endpoint.portOverrides.find(
      ({ name, protocol = port.protocol }) => name === port.name && protocol === port.protocol,
    )
    if (own && own.port > 0) serving.push({ endpoint, port: own.port, scopes: own.scopes ?? endpoint.scopes })
  }
  return serving
}
