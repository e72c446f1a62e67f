import type { localv1 } from '@kpng/api'
import { type EndpointRecord, none } from '../store/index.js'
import { byNode } from './by-node.js'
import { uniquePath } from './endpoint-path.js'
import { EndpointItem } from './items.js'
import { servedPorts } from './ports.js'
import { addressesAndPorts, type NodeTopology, selectEndpoints } from './selection.js'
import type { ServedEntry, ServiceView } from './service-view.js'

// What a node sees of its own endpoints. Everything else it sees as its neighbours do: so a thousand nodes with one endpoint each
// cost a thousand endpoints and not a million.

export const hasLocalPolicy = ({ service }: ServedEntry): boolean =>
  service.internalTrafficToLocal || service.externalTrafficToLocal

/** The endpoints of one node, to be laid over a view that nodes share. */
export type OwnEndpoints = (node: NodeTopology) => readonly EndpointItem[]

/** A Local policy may give a node's own endpoints more to do, those too that others do not use at all. */
export function ownUnderLocalPolicy(entry: ServedEntry, shared: ServiceView, zone: string): OwnEndpoints {
  const leftOutOn = byNode(shared.leftOut, ({ node }) => node)
  const everywhere = [...shared.items.map(({ endpoint }) => endpoint), ...shared.leftOut]
  const witnesses = readyWitnesses(entry.service, everywhere, zone)
  return (node) => {
    const known = shared.itemsOn(node.name)
    const leftOut = leftOutOn(node.name)
    if (known.length + leftOut.length === 0) return none
    const paths = new Map(known.map(({ endpoint, path }) => [endpoint, path]))
    const candidates = new Set([...paths.keys(), ...leftOut, ...witnesses])
    const own: EndpointItem[] = []
    const isTaken = (path: string) => shared.get(path) !== undefined || own.some((item) => item.path === path)
    for (const selected of selectEndpoints(entry.service, [...candidates], node).used) {
      if (!selected.local) continue
      const path = paths.get(selected.endpoint) ?? uniquePath(entry.path, selected.endpoint, isTaken)
      own.push(new EndpointItem(path, selected, entry.service.ports))
    }
    return own
  }
}

/**
 * For a node's own endpoints it matters whether others are ready (else terminating ones stand in), and whether the hints are to be
 * followed. A few endpoints tell as much as all of them: one for each way to serve the ports and families, and there one without
 * hints, which makes everybody ignore them, before one that is meant for this zone, before any.
 */
function readyWitnesses(
  service: localv1.Service,
  endpoints: readonly EndpointRecord[],
  zone: string,
): readonly EndpointRecord[] {
  const served = new Map<EndpointRecord['ports'], string>()
  const best = new Map<string, EndpointRecord>()
  const rank = ({ hints }: EndpointRecord) => (!hints?.zones.length ? 2 : hints.zones.includes(zone) ? 1 : 0)
  for (const endpoint of endpoints) {
    if (!endpoint.conditions.ready) continue
    let ports = served.get(endpoint.ports)
    if (ports === undefined) {
      ports = servedPorts(service, endpoint.ports)
      served.set(endpoint.ports, ports)
    }
    const way = `${ports} ${endpoint.v4.length > 0} ${endpoint.v6.length > 0}`
    const known = best.get(way)
    if (!known || rank(endpoint) > rank(known)) best.set(way, endpoint)
  }
  return [...best.values()]
}

/** Whether some have the same addresses and other ports. They set each other aside port by port: a node cannot be told of its own alone. */
export function shareAddresses(endpoints: readonly EndpointRecord[]): boolean {
  const ports = new Map<string, string>()
  return endpoints.some((endpoint) => {
    const addresses = addressesAndPorts({ ...endpoint, ports: undefined })
    const known = ports.get(addresses)
    ports.set(addresses, addressesAndPorts(endpoint))
    return known !== undefined && known !== addressesAndPorts(endpoint)
  })
}
