import { endpointPath, type localv1 } from '@kpng/api'
import { hashKey } from '../store/hash.js'
import type { EndpointRecord, ServiceEntry } from '../store/index.js'
import type { Batch } from './change-set.js'
import { EndpointItem, type SetItem, serviceItem } from './items.js'
import {
  type Availability,
  addressesAndPorts,
  type NodeTopology,
  type SelectedEndpoint,
  selectEndpoints,
} from './selection.js'

/** One service as one node sees it. */
export interface ServiceView {
  readonly service: SetItem
  /** By path. */
  readonly endpoints: ReadonlyMap<string, EndpointItem>
  /** The same endpoints, to be told as a whole. */
  readonly batch: Batch
}

/**
 * What a node's view of an entry can depend on. Nodes with the same answer share the view: of a thousand nodes, only the few
 * that run one of the service's pods differ from the rest.
 */
interface Dependence {
  readonly nodes: ReadonlySet<string>
  readonly hints: boolean
  readonly zones: boolean
  readonly views: Map<string, ServiceView>
}

const dependences = new WeakMap<ServiceEntry, Dependence>()

function dependenceOf(entry: ServiceEntry): Dependence {
  let dependence = dependences.get(entry)
  if (!dependence) {
    const nodes = new Set<string>()
    let hinted = false
    let zones = false
    for (const endpoints of entry.sources.values()) {
      for (const { node, hints } of endpoints) {
        if (node !== '') nodes.add(node)
        if (!hints) continue
        hinted = true
        for (const name of hints.nodes) nodes.add(name)
        if (hints.zones.length > 0) zones = true
      }
    }
    dependence = { nodes, hints: hinted, zones, views: new Map() }
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
  const { name, shared } = viewerGroup(entry, node)
  // What only one node sees is quickly made again; kept for all nodes it would be most of the memory.
  if (!shared)
    return onlyLocalityDiffers(entry, entry.service)
      ? withLocals(entry, node)
      : makeView(entry, entry.service, node, shared)
  const { views } = dependenceOf(entry)
  let view = views.get(name)
  if (!view) {
    view = makeView(entry, entry.service, node, shared)
    views.set(name, view)
  }
  return view
}

/** The service as every node sees it. */
export const serviceOf = (entry: ServiceEntry): SetItem | undefined => viewOf(entry, nobody)?.service

const nobody: NodeTopology = { name: '', zone: '' }

/** Without hints and Local policies every node uses the same endpoints: which of them are its own is all that differs. */
const onlyLocalityDiffers = (entry: ServiceEntry, service: localv1.Service): boolean =>
  !dependenceOf(entry).hints && !service.internalTrafficToLocal && !service.externalTrafficToLocal

function withLocals(entry: ServiceEntry, node: NodeTopology): ServiceView | undefined {
  const everybodys = viewOf(entry, nobody)
  if (!everybodys) return undefined
  const endpoints = new Map(everybodys.endpoints)
  for (const [path, item] of endpoints) {
    if (item.selected.endpoint.node === node.name) endpoints.set(path, item.asLocal())
  }
  return { service: everybodys.service, endpoints, batch: { items: [...endpoints.values()], shared: false } }
}

function makeView(entry: ServiceEntry, service: localv1.Service, node: NodeTopology, shared: boolean): ServiceView {
  const endpoints = [...entry.sources.values()].flat()
  const { used, availability } = selectEndpoints(service, endpoints, node)
  const items = new Map<string, EndpointItem>()
  for (const selected of used) {
    const path = uniquePath(entry.path, selected.endpoint, items)
    items.set(path, endpointItem(path, selected, service.ports))
  }
  const batch = { items: [...items.values()], shared }
  return { service: itemOfService(entry.path, service, availability), endpoints: items, batch }
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
const identityOf = (endpoint: EndpointRecord): string => `${endpoint.hostname}|${addressesAndPorts(endpoint)}`

const endpointItems = new WeakMap<EndpointRecord, EndpointItem[]>()

/** The item for a selected endpoint: the same object as long as nothing in it changed, so that its bytes are made once. */
function endpointItem(path: string, selected: SelectedEndpoint, ports: readonly localv1.PortMapping[]): EndpointItem {
  if (selected.portScopes) return new EndpointItem(path, selected, ports)
  const known = endpointItems.get(selected.endpoint)
  const same = known?.find(
    (item) => item.path === path && item.selected.scopes === selected.scopes && item.selected.local === selected.local,
  )
  if (same) return same
  const item = new EndpointItem(path, selected, ports)
  if (known) known.push(item)
  else endpointItems.set(selected.endpoint, [item])
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
