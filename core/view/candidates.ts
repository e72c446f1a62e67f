import { endpointPath, type localv1, servicePath } from '@kpng/api'
import { type EndpointRecord, none } from '../store/index.js'
import { hashKey } from '../store/records.js'

// What can be said of a service's endpoints before anybody asks for a node: which ports they serve, which of them are duplicates, and their
// paths.

/** One endpoint, and what of it is the same to every node. */
export interface Candidate {
  readonly endpoint: EndpointRecord
  /** '1' or '0' per port of the service: whether it serves it. */
  readonly served: string
  /** The same, without the ports that it serves under an address and number for which another one counts. */
  counted: string
  /** Why no node uses it: it serves none of the service's ports, or the same address is in another slice and that one counts. */
  reason: 'no-port' | 'duplicate' | undefined
  /** Its path in the views of all nodes that use it. A matter of what exists now, not of what was before. */
  path: string
}

export interface Candidates {
  readonly list: readonly Candidate[]
  /** Whether an endpoint could not have the path that it would have alone. */
  readonly hasLongerPaths: boolean
}

/** @param similar those of another revision: most paths are the same strings, which are found without a look at their letters */
export function candidatesOf(
  service: localv1.Service,
  endpoints: readonly EndpointRecord[],
  similar?: Candidates,
): Candidates {
  const servedBySlice = new Map<EndpointRecord['ports'], string>()
  const list = endpoints.map((endpoint): Candidate => {
    let served = servedBySlice.get(endpoint.ports)
    if (served === undefined) {
      served = servedPorts(service, endpoint.ports)
      servedBySlice.set(endpoint.ports, served)
    }
    return { endpoint, served, counted: served, reason: served.includes('1') ? undefined : 'no-port', path: '' }
  })
  setDuplicatesAside(service, list)
  return { list, hasLongerPaths: givePaths(service, list, similar) }
}

/** Returns whether there is one that could not have the path that it would have alone. */
function givePaths(service: localv1.Service, list: readonly Candidate[], similar: Candidates | undefined): boolean {
  const known = similar && !similar.hasLongerPaths ? similar.list : none
  const find = inOrder(known)
  const taken = new Set<string>()
  let hasLongerPaths = false
  for (const candidate of list) {
    const { endpoint, reason } = candidate
    const own = known[find(endpoint)]?.path
    if (reason) continue
    const path = own || ownPath(service, endpoint)
    candidate.path = path
    for (let count = 2; taken.has(candidate.path); count++) {
      hasLongerPaths = true
      candidate.path = `${path}:${hashKey(identityOf(endpoint))}${count === 2 ? '' : `:${count}`}`
    }
    taken.add(candidate.path)
  }
  return hasLongerPaths
}

/** Finds endpoints that are asked for in about the order of the list: the next one, or one went. Returns -1 for others. */
export function inOrder(list: readonly { readonly endpoint: EndpointRecord }[]): (endpoint: EndpointRecord) => number {
  let at = 0
  return (endpoint) => {
    const found = list[at]?.endpoint === endpoint ? at : at + 1
    if (list[found]?.endpoint !== endpoint) return -1
    at = found + 1
    return found
  }
}

/**
 * A pod's endpoint is named after it. A pod with two address families has two endpoints: the IPv6 one says so, whether there
 * is an IPv4 one or not, so that a path never depends on what else exists. Endpoints without a pod are named by a hash.
 */
function ownPath({ namespace, name }: localv1.Service, endpoint: EndpointRecord): string {
  const { podName, v4, v6 } = endpoint
  const service = servicePath(namespace, name)
  if (podName === '') return endpointPath(service, hashKey(identityOf(endpoint)))
  return endpointPath(service, v4.length === 0 && v6.length > 0 ? `${podName}:v6` : podName)
}

/** What makes an endpoint without a name the same one after its conditions changed. */
const identityOf = ({ hostname, v4, v6, ports }: EndpointRecord): string =>
  [hostname, v4.join(), v6.join(), ...(ports ?? none).map(({ name, port }) => `${name}:${port}`)].join('|')

/**
 * The port number under which an endpoint serves a port of its service, or undefined when it does not serve it. A slice's own
 * number counts, since it may differ from slice to slice (target ports by name), and what a slice does not list is not served.
 * As in kube-proxy, a port of the same name and another protocol is another port.
 */
function targetPortOf(port: localv1.PortMapping, ports: EndpointRecord['ports']): number | undefined {
  if (ports !== undefined) {
    return ports.find(({ name, protocol = port.protocol }) => name === port.name && protocol === port.protocol)?.port
  }
  return port.targetPort > 0 ? port.targetPort : undefined
}

/** The numbers under which an endpoint serves the ports of its service. */
export const portNumbersOf = (service: localv1.Service, ports: EndpointRecord['ports']): number[] => [
  ...new Set(service.ports.flatMap((port) => targetPortOf(port, ports) ?? [])),
]

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
const addressesOf = ({ v4, v6 }: EndpointRecord): string =>
  v4.length + v6.length === 1 ? ((v4[0] ?? v6[0]) as string) : `${v4.join()}|${v6.join()}`
