import { endpointPath, type localv1 } from '@kpng/api'
import { hashKey } from '../store/hash.js'
import type { EndpointRecord, ServiceEntry } from '../store/index.js'
import { EndpointItem, type SetItem, serviceItem } from './items.js'
import { type Availability, type NodeTopology, type SelectedEndpoint, selectEndpoints } from './selection.js'

/** One service as one node sees it. */
export interface ServiceView {
  readonly service: SetItem
  /** By path. */
  readonly endpoints: ReadonlyMap<string, EndpointItem>
}

/**
 * What a node's view of an entry can depend on. Nodes with the same answer share the view: of a thousand nodes, only the few
 * that run one of the service's pods differ from the rest.
 */
interface Dependence {
  readonly nodes: ReadonlySet<string>
  readonly zones: boolean
  readonly views: Map<string, ServiceView>
}

const dependences = new WeakMap<ServiceEntry, Dependence>()

function dependenceOf(entry: ServiceEntry): Dependence {
  let dependence = dependences.get(entry)
  if (!dependence) {
    const nodes = new Set<string>()
    let zones = false
    for (const endpoints of entry.sources.values()) {
      for (const { node, hints } of endpoints) {
        if (node !== '') nodes.add(node)
        if (!hints) continue
        for (const hinted of hints.nodes) nodes.add(hinted)
        if (hints.zones.length > 0) zones = true
      }
    }
    dependence = { nodes, zones, views: new Map() }
    dependences.set(entry, dependence)
  }
  return dependence
}

/** Whether a node's zone matters for this entry. */
export const dependsOnZone = (entry: ServiceEntry): boolean => dependenceOf(entry).zones

/** A group of nodes that see an entry alike. Equal names, equal views. */
export interface ViewerGroup {
  readonly name: string
  /** More than one node may be in it. */
  readonly shared: boolean
}

const everybody: ViewerGroup = { name: '', shared: true }

export function viewerGroup(entry: ServiceEntry, node: NodeTopology): ViewerGroup {
  const { nodes, zones } = dependenceOf(entry)
  if (nodes.has(node.name)) return { name: `node ${node.name} ${node.zone}`, shared: false }
  return zones ? { name: `zone ${node.zone}`, shared: true } : everybody
}

/** An entry as a node sees it, or undefined when there is no service (yet). */
export function viewOf(entry: ServiceEntry | undefined, node: NodeTopology): ServiceView | undefined {
  if (!entry?.service) return undefined
  const { views } = dependenceOf(entry)
  const { name, shared } = viewerGroup(entry, node)
  const known = views.get(name)
  if (known) return known
  const view = makeView(entry, entry.service, node)
  // What only one node sees is quickly made again, and kept for all nodes it would be most of the memory.
  if (shared) views.set(name, view)
  return view
}

function makeView(entry: ServiceEntry, service: localv1.Service, node: NodeTopology): ServiceView {
  const endpoints = [...entry.sources.values()].flat()
  const { used, availability } = selectEndpoints(service, endpoints, node)
  const items = new Map<string, EndpointItem>()
  for (const selected of used) {
    const path = uniquePath(entry.path, selected.endpoint, items)
    items.set(path, endpointItem(path, selected, service.ports))
  }
  return { service: itemOfService(entry.path, service, availability), endpoints: items }
}

/**
 * A pod's endpoint is named after it. A pod with two address families has two endpoints: the IPv6 one says so, whether there
 * is an IPv4 one or not, so that a path never depends on what else exists. Endpoints without a pod are named by a hash.
 */
function uniquePath(service: string, endpoint: EndpointRecord, taken: ReadonlyMap<string, unknown>): string {
  const { podName, v4, v6 } = endpoint
  const name =
    podName === '' ? hashKey(identityOf(endpoint)) : v4.length === 0 && v6.length > 0 ? `${podName}:v6` : podName
  const path = endpointPath(service, name)
  if (!taken.has(path)) return path
  const longer = endpointPath(service, `${name}:${hashKey(identityOf(endpoint))}`)
  for (let count = 2; ; count++) {
    const candidate = count === 2 ? longer : `${longer}:${count}`
    if (!taken.has(candidate)) return candidate
  }
}

/** What makes an endpoint without a name the same one after its conditions changed. */
const identityOf = ({ hostname, v4, v6, ports }: EndpointRecord): string => JSON.stringify([hostname, v4, v6, ports])

const endpointItems = new WeakMap<EndpointRecord, EndpointItem[]>()

/** The item for a selected endpoint: the same object as long as nothing in it changed. */
function endpointItem(path: string, selected: SelectedEndpoint, ports: readonly localv1.PortMapping[]): EndpointItem {
  if (selected.portScopes) return new EndpointItem(path, selected, ports)
  let variants = endpointItems.get(selected.endpoint)
  if (!variants) {
    variants = []
    endpointItems.set(selected.endpoint, variants)
  }
  const variant = (selected.local ? 8 : 0) | selected.scopes
  const known = variants[variant]
  if (known?.path === path) return known
  const item = new EndpointItem(path, selected, ports)
  variants[variant] = item
  return item
}

const serviceItems = new WeakMap<localv1.Service, Map<string, SetItem>>()

/** The service with what is known of its endpoints anywhere: the same object for all nodes, until that changes. */
function itemOfService(path: string, service: localv1.Service, availability: readonly Availability[]): SetItem {
  let variants = serviceItems.get(service)
  if (!variants) {
    variants = new Map()
    serviceItems.set(service, variants)
  }
  const variant = availability.map(({ v4, v6 }) => (v4 ? 1 : 0) | (v6 ? 2 : 0)).join('')
  let item = variants.get(variant)
  if (!item) {
    const ports = service.ports.map((port, index) => ({ ...port, hasEndpoints: flagsOf(availability[index]) }))
    item = serviceItem(path, { ...service, ports })
    variants.set(variant, item)
  }
  return item
}

const flagsOf = (available: Availability | undefined): localv1.FamilyFlags => ({
  $typeName: 'localv1.FamilyFlags',
  v4: available?.v4 ?? false,
  v6: available?.v6 ?? false,
})
