import { type EndpointRecord, none } from '../store/index.js'
import type { Batch } from './change-set.js'
import type { EndpointItem, ServiceItem } from './items.js'
import { hasLocalPolicy, type OwnEndpoints, ownUnderLocalPolicy, shareAddresses } from './own-endpoints.js'
import type { NodeTopology } from './selection.js'
import { endpointsOf, type ServedEntry, ServiceView } from './service-view.js'

/** A service as one node sees it: as others see it, and its own endpoints over that. */
export interface NodeServiceView {
  readonly shared: ServiceView
  readonly own: readonly EndpointItem[]
}

/** One service as the nodes of the cluster see it. Of a thousand nodes only the few that run one of its pods differ from the rest. */
export class ServiceViews {
  readonly #entry: ServedEntry
  /** Whether hints name zones; else all zones are one. */
  readonly dependOnZone: boolean
  /** Nodes whose view is like no other's. */
  readonly #apart: ReadonlySet<string> | undefined
  /** As nodes without a zone see it that run none of its pods. */
  readonly #everybodys: ServiceView
  /** The same for each zone. */
  #zones: Map<string, ServiceView> | undefined
  #ownUnderLocalPolicy: Map<ServiceView, OwnEndpoints> | undefined

  constructor(entry: ServedEntry, similar: ServiceViews | undefined) {
    const endpoints = endpointsOf(entry)
    this.#entry = entry
    this.dependOnZone = endpoints.some(({ hints }) => hints !== undefined && hints.zones.length > 0)
    this.#apart = nodesApart(entry, endpoints)
    this.#everybodys = this.#makeView('', similar ? similar.#everybodys : undefined)
  }

  /** The service is the same to every node: only its endpoints are not. */
  get service(): ServiceItem {
    return this.#everybodys.service
  }

  of(node: NodeTopology): NodeServiceView {
    if (this.#apart?.has(node.name)) {
      const options = { entry: this.#entry, node, shared: false, similar: this.#everybodys }
      return { shared: new ServiceView(options), own: none }
    }
    const shared = this.dependOnZone ? this.#ofZone(node.zone) : this.#everybodys
    return { shared, own: node.name === '' ? none : this.#own(node, shared) }
  }

  /** Lets go of the bytes that only those need who start watching. */
  forgetFrames(): void {
    for (const view of [this.#everybodys, ...(this.#zones?.values() ?? [])]) delete view.frames
  }

  #ofZone(zone: string): ServiceView {
    if (zone === '') return this.#everybodys
    this.#zones ??= new Map()
    let view = this.#zones.get(zone)
    if (!view) {
      view = this.#makeView(zone, this.#everybodys)
      this.#zones.set(zone, view)
    }
    return view
  }

  #makeView(zone: string, similar: ServiceView | undefined): ServiceView {
    return new ServiceView({ entry: this.#entry, node: { name: '', zone }, shared: true, similar })
  }

  #own(node: NodeTopology, shared: ServiceView): readonly EndpointItem[] {
    const { internalTrafficToLocal, externalTrafficToLocal } = this.#entry.service
    // All nodes use the same endpoints: which of them are its own is all that differs.
    if (!internalTrafficToLocal && !externalTrafficToLocal)
      return shared.itemsOn(node.name).map((item) => item.asLocal())
    this.#ownUnderLocalPolicy ??= new Map()
    let own = this.#ownUnderLocalPolicy.get(shared)
    if (!own) {
      own = ownUnderLocalPolicy(this.#entry, shared, node.zone)
      this.#ownUnderLocalPolicy.set(shared, own)
    }
    return own(node)
  }
}

/** Where hints name nodes, or endpoints stand in each other's way, the nodes concerned are worked out one by one. */
function nodesApart(entry: ServedEntry, endpoints: readonly EndpointRecord[]): ReadonlySet<string> | undefined {
  const named = endpoints.some(({ hints }) => hints !== undefined && hints.nodes.length > 0)
  if (!named && !(hasLocalPolicy(entry) && shareAddresses(endpoints))) return undefined
  return new Set(endpoints.flatMap(({ node, hints }) => [node, ...(hints?.nodes ?? none)]))
}

/** The endpoints of a view, to be told as a whole. */
export function batchOfView({ shared, own }: NodeServiceView): Batch<EndpointItem> {
  if (own.length === 0) return shared
  const ownByPath = new Map(own.map((item) => [item.path, item]))
  const items = shared.items.map((item) => ownByPath.get(item.path) ?? item)
  for (const item of own) if (!shared.get(item.path)) items.push(item)
  return { items, shared: false }
}
