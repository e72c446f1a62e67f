import type { localv1 } from '@kpng/api'
import type { EndpointRecord } from '../store/index.js'

// What can be said of a service's endpoints before anybody asks for a node: which ports they serve, and which of them are duplicates.

/** One endpoint, and what of it is the same to every node. */
export interface Candidate {
  readonly endpoint: EndpointRecord
  /** '1' or '0' per port of the service: whether it serves it. */
  readonly served: string
  /** The same, without the ports that it serves under an address and number for which another one counts. */
  counted: string
  /** Why no node uses it: it serves none of the service's ports, or the same address is in another slice and that one counts. */
  reason: 'no-port' | 'duplicate' | undefined
}

export function candidatesOf(service: localv1.Service, endpoints: readonly EndpointRecord[]): readonly Candidate[] {
  const servedBySlice = new Map<EndpointRecord['ports'], string>()
  const candidates = endpoints.map((endpoint): Candidate => {
    let served = servedBySlice.get(endpoint.ports)
    if (served === undefined) {
      served = servedPorts(service, endpoint.ports)
      servedBySlice.set(endpoint.ports, served)
    }
    return { endpoint, served, counted: served, reason: served.includes('1') ? undefined : 'no-port' }
  })
  setDuplicatesAside(service, candidates)
  return candidates
}

/**
 * The port number under which an endpoint serves a port of its service, or undefined when it does not serve it. A slice's own
 * number counts, since it may differ from slice to slice (target ports by name), and what a slice does not list is not served.
 */
function targetPortOf(port: localv1.PortMapping, ports: EndpointRecord['ports']): number | undefined {
  if (ports !== undefined) return ports.find((candidate) => candidate.name === port.name)?.port
  return port.targetPort > 0 ? port.targetPort : undefined
}

/** Which of a service's ports an endpoint serves. A service without ports has one, which everybody serves. */
function servedPorts(service: localv1.Service, ports: EndpointRecord['ports']): string {
  if (service.ports.length === 0) return '1'
  return service.ports.map((port) => (targetPortOf(port, ports) === undefined ? '0' : '1')).join('')
}

/**
 * One address in two slices (an endpoint on its way from one to the other, or an address that a new pod got already): for each
 * port that both serve under the same number, the one that is not terminating counts.
 */
function setDuplicatesAside(service: localv1.Service, candidates: readonly Candidate[]): void {
  for (const alike of withSameAddresses(candidates)) {
    for (let port = 0; port < (alike[0] as Candidate).served.length; port++) {
      const counting = new Map<number | undefined, Candidate>()
      for (const candidate of alike) {
        if (candidate.served[port] === '0') continue
        const mapping = service.ports[port]
        const number = mapping && targetPortOf(mapping, candidate.endpoint.ports)
        const known = counting.get(number)
        const isBetter = known?.endpoint.conditions.terminating && !candidate.endpoint.conditions.terminating
        if (!known || isBetter) counting.set(number, candidate)
        const aside = isBetter ? known : known && candidate
        if (aside) aside.counted = `${aside.counted.slice(0, port)}0${aside.counted.slice(port + 1)}`
      }
    }
    for (const candidate of alike) if (!candidate.counted.includes('1')) candidate.reason ??= 'duplicate'
  }
}

/** The candidates that are not the only ones of their addresses, which is rare. */
function withSameAddresses(candidates: readonly Candidate[]): Iterable<readonly Candidate[]> {
  const first = new Map<string, Candidate>()
  const repeated = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    const addresses = addressesOf(candidate.endpoint)
    const known = first.get(addresses)
    if (!known) first.set(addresses, candidate)
    else {
      const alike = repeated.get(addresses) ?? [known]
      alike.push(candidate)
      repeated.set(addresses, alike)
    }
  }
  return repeated.values()
}

/** One text for all addresses of an endpoint. Nearly all have one. */
export const addressesOf = ({ v4, v6 }: EndpointRecord): string =>
  v4.length + v6.length === 1 ? ((v4[0] ?? v6[0]) as string) : `${v4.join()}|${v6.join()}`
