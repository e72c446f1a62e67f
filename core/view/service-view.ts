import type { localv1 } from '@kpng/api'
import { type EndpointRecord, none, type ServiceEntry } from '../store/index.js'
import { EndpointPaths, few, inOrder } from './endpoint-paths.js'
import { type Batch, EndpointItem, mixedBatches, PortOverrides, ServiceItem, sharedBatchOf } from './items.js'
import { EndpointSelector, type Hint, type NodeTopology } from './selection.js'

/** The endpoints of a service that many nodes see alike. */
export class SharedEndpoints {
  readonly items: readonly EndpointItem[]
  readonly batches: readonly Batch<EndpointItem>[]
  readonly #ofCandidates: readonly (EndpointItem | undefined)[]

  constructor(ofCandidates: readonly (EndpointItem | undefined)[]) {
    this.#ofCandidates = ofCandidates
    this.items = ofCandidates.filter((item) => item !== undefined)
    // Nearly always all of them are used.
    if (this.items.length === ofCandidates.length) this.#ofCandidates = this.items
    this.batches = sharedBatchOf(this.items)
  }

  /** The item of the candidate that has a number. */
  of(candidate: number | undefined): EndpointItem | undefined {
    return candidate === undefined ? undefined : this.#ofCandidates[candidate]
  }
}

/** A service as one node sees it: its own endpoints laid over those that it shares with other nodes. */
export class NodeServiceView {
  readonly service: ServiceItem
  readonly shared: SharedEndpoints
  /** Those that are not in `shared`, or say less there. */
  readonly own: readonly EndpointItem[]
  readonly #paths: EndpointPaths

  constructor(service: ServiceItem, shared: SharedEndpoints, own: readonly EndpointItem[], paths: EndpointPaths) {
    this.service = service
    this.shared = shared
    this.own = own
    this.#paths = paths
  }

  get batches(): readonly Batch<EndpointItem>[] {
    if (this.own.length === 0) return this.shared.batches
    return mixedBatches(this.shared.items, new Set(this.own.map(({ path }) => path)), this.own)
  }

  get(path: string): EndpointItem | undefined {
    return this.own.find((item) => item.path === path) ?? this.shared.of(this.#paths.numberOf(path))
  }
}

/**
 * One service as the nodes of the cluster see it. Nodes that follow the same hints differ only in the endpoints that they run and in
 * those that are meant for them: so a thousand nodes with one endpoint each cost a thousand endpoints and not a million.
 */
export class ServiceView {
  readonly service: ServiceItem
  readonly #selector: EndpointSelector
  readonly #overrides: PortOverrides
  readonly #paths: EndpointPaths
  /** As nodes see it that have no endpoints of their own. */
  #unhinted: NodeServiceView | undefined
  /** The same, by the hints that the nodes follow. */
  #hinted: Map<string, NodeServiceView> | undefined
  /** The bits of all nodes that endpoints are on, or meant for. */
  readonly nodeBits: number
  /** The numbers of the candidates that are on a node, or meant for it. */
  #candidatesOfNode: Map<string, number[]> | undefined

  /** @param similar another revision of the service: what did not change since is taken over from it */
  constructor(entry: ServiceEntry & { readonly service: localv1.Service }, similar: ServiceView | undefined) {
    const { path, service } = entry
    this.#selector = new EndpointSelector(service, endpointsOf(entry))
    this.#overrides = new PortOverrides(service.ports)
    this.#paths = new EndpointPaths(path, this.#selector.candidates, similar === undefined ? undefined : similar.#paths)
    this.nodeBits = this.#selector.candidates.reduce((bits, { endpoint }) => bits | bitsOf(endpoint), 0)
    const { availability } = this.#selector
    const known = similar?.service
    this.service = known?.isOf(service, availability) ? known : new ServiceItem(path, service, availability)
  }

  /** Whether nodes may use different endpoints because of hints. */
  get hasHints(): boolean {
    return this.#selector.hasHints
  }

  /** Whether a node's zone matters. */
  get dependsOnZone(): boolean {
    return this.#selector.dependsOnZone
  }

  /** @param similar what nodes like this one saw in another revision: items that say the same are taken over from it */
  of(node: NodeTopology, similar?: SharedEndpoints): NodeServiceView {
    const hints = this.#selector.hintsFor(node)
    const view = this.#common(node.zone, hints, similar)
    if ((this.nodeBits & bitOf(node.name)) === 0) return view
    const own = this.#numbersOf(node.name).flatMap((number) => this.#item(number, node, hints) ?? none)
    return own.length === 0 ? view : new NodeServiceView(this.service, view.shared, own, this.#paths)
  }

  #common(zone: string, hints: readonly Hint[], similar: SharedEndpoints | undefined): NodeServiceView {
    if (hints.length === 0) {
      this.#unhinted ??= this.#share(zone, hints, similar)
      return this.#unhinted
    }
    const key = hints.includes('zone') ? `${hints.join()} ${zone}` : hints.join()
    this.#hinted ??= new Map()
    let view = this.#hinted.get(key)
    if (!view) {
      view = this.#share(zone, hints, similar)
      this.#hinted.set(key, view)
    }
    return view
  }

  /** The view of a node without a name: nothing is its own, and no hint is meant for it alone. */
  #share(zone: string, hints: readonly Hint[], similar: SharedEndpoints | undefined): NodeServiceView {
    const nobody = { name: '', zone }
    const known = similar?.items ?? none
    const find = inOrder(known)
    const items = this.#selector.candidates.map(({ endpoint }, number) =>
      this.#item(number, nobody, hints, known[find(endpoint)]),
    )
    return new NodeServiceView(this.service, new SharedEndpoints(items), none, this.#paths)
  }

  #item(number: number, node: NodeTopology, hints: readonly Hint[], known?: EndpointItem): EndpointItem | undefined {
    const candidate = this.#selector.candidates[number]
    const selected = candidate && this.#selector.select(candidate, node, hints)
    if (!selected) return undefined
    const path = this.#paths.of(number)
    return known?.path === path && known.isOf(selected) ? known : new EndpointItem(path, selected, this.#overrides)
  }

  #numbersOf(node: string): readonly number[] {
    const { candidates } = this.#selector
    if (node === '') return none
    if (candidates.length > few) return this.#index().get(node) ?? none
    const numbers: number[] = []
    for (const [number, { endpoint }] of candidates.entries()) {
      if (endpoint.node === node || endpoint.hints?.nodes.includes(node)) numbers.push(number)
    }
    return numbers
  }

  #index(): Map<string, number[]> {
    if (this.#candidatesOfNode) return this.#candidatesOfNode
    const index = new Map<string, number[]>()
    for (const [number, { endpoint }] of this.#selector.candidates.entries()) {
      for (const node of new Set([endpoint.node, ...(endpoint.hints?.nodes ?? none)])) {
        const numbers = index.get(node)
        if (numbers) numbers.push(number)
        else index.set(node, [number])
      }
    }
    this.#candidatesOfNode = index
    return index
  }
}

/**
 * One of 32 bits for a node's name. Of most services a node runs nothing, and this says so without a look at their endpoints: when a node
 * starts to watch, that look would be most of the work.
 */
export function bitOf(node: string): number {
  let hash = node.length
  for (let index = Math.max(0, node.length - 4); index < node.length; index++) hash = hash * 37 + node.charCodeAt(index)
  return 1 << ((hash ^ (hash >> 5)) & 31)
}

const bitsOf = ({ node, hints }: EndpointRecord): number =>
  hints ? hints.nodes.reduce((bits, name) => bits | bitOf(name), bitOf(node)) : bitOf(node)

/** The views of a store's services. A view lives as long as its entry: as long as the store holds it, or keeps it for a watcher. */
export class ServiceViews {
  readonly #views = new WeakMap<ServiceEntry, ServiceView>()

  /** Undefined for an entry without a service, which is in nobody's view. */
  of(entry: ServiceEntry | undefined, similar?: ServiceView): ServiceView | undefined {
    const { service } = entry ?? {}
    if (!entry || !service) return undefined
    let view = this.#views.get(entry)
    if (!view) {
      view = new ServiceView({ ...entry, service }, similar)
      this.#views.set(entry, view)
    }
    return view
  }
}

/** All endpoints, of whatever source. Nearly every service has one source. */
function endpointsOf({ sources }: ServiceEntry): readonly EndpointRecord[] {
  if (sources.size > 1) return [...sources.values()].flat()
  for (const endpoints of sources.values()) return endpoints
  return none
}
