import type { localv1 } from '@kpng/api'
import type { EndpointRecord } from '../store/index.js'

/**
 * The port number under which an endpoint serves a port of its service, or undefined when it does not serve it. A slice's own
 * number counts, since it may differ from slice to slice (target ports by name), and what a slice does not list is not served.
 * As in kube-proxy, a port of the same name and another protocol is another port.
 */
export function targetPortOf(port: localv1.PortMapping, ports: EndpointRecord['ports']): number | undefined {
  if (ports !== undefined) {
    return ports.find(({ name, protocol = port.protocol }) => name === port.name && protocol === port.protocol)?.port
  }
  return port.targetPort > 0 ? port.targetPort : undefined
}

/** Which of a service's ports an endpoint serves: a '1' or '0' a port. A service without ports has one, which everybody serves. */
export function servedPorts(service: localv1.Service, ports: EndpointRecord['ports']): string {
  if (service.ports.length === 0) return '1'
  return service.ports.map((port) => (targetPortOf(port, ports) === undefined ? '0' : '1')).join('')
}
