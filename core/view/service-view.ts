import type { localv1 } from '@kpng/api'
import { type EndpointRecord, none, type ServiceEntry } from '../store/index.js'
import { sameStrings } from '../store/records.js'
import { type Candidate, Candidates, inOrder } from './candidates.js'
import { type Batch, EndpointItem, mixedBatches, PortOverrides, ServiceItem, sharedBatchOf } from './items.js'
import { EndpointSelector, type Hint, type NodeTopology } from './selection.js'
import { finish, type Work } from './work.js'

/** Up to so many are looked through: an index for each of thousands of small services would be most of their memory. */
const few = 16

/** The endpoints of a service that many nodes see alike: all that follow the same hints and, where zones matter, are in one zone. */
export class SharedEndpoints {
  readonly items: readonly EndpointItem[]
  readonly batches: readonly Batch<EndpointItem>[]
  readonly #view: ServiceView | undefined
  readonly #zone: string
  readonly #hints: readonly Hint[]

  constructor(items: readonly EndpointItem[], view?: ServiceView, zone = '', hints: readonly Hint[] = none) {
    this.items = items
    this.batches = sharedBatchOf(items)
    this.#view = view
    this.#zone = zone
    this.#hints = hints
  }

  /** The item of this path, or one that says the same. */
  get(path: string): EndpointItem | undefined {
    if (this.items.length <= few) return this.items.find((item) => item.path === path)
    return this.#view?.itemAt(path, this.#zone, this.#hints)
  }

  /** Whether an endpoint that was here is the same item in another view of the service. */
  isSelectedAs(view: ServiceView, zone: string, hints: readonly Hint[]): boolean {
    return this.#zone === zone && sameStrings(this.#hints, hints) && view.selectsLike(this.#view)
  }
}

/** A service as one node sees it: its own endpoints laid over those that it shares with other nodes. */
export class NodeServiceView {
  readonly service: ServiceItem
  readonly shared: SharedEndpoints
  /** Those that are not in `shared`, or say less there. */
  readonly own: readonly EndpointItem[]

  constructor(service: ServiceItem, shared: SharedEndpoints, own: readonly EndpointItem[]) {
    this.service = service
    this.shared = shared
    this.own = own
  }

  get batches(): readonly Batch<EndpointItem>[] {
    if (this.own.length === 0) return this.shared.batches
    return mixedBatches(this.shared.items, new Set(this.own.map(({ path }) => path)), this.own)
  }

  get(path: string): EndpointItem | undefined {
    return this.own.find((item) => item.path === path) ?? this.shared.get(path)
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
  /** As nodes see it that have no endpoints of their own. */
  #unhinted: NodeServiceView | undefined
  /** The same, by the hints that the nodes follow. */
  #hinted: Map<string, NodeServiceView> | undefined
  /** The bits of all nodes that endpoints are on, or meant for. */
  readonly nodeBits: number

  constructor(path: string, service: localv1.Service, candidates: Candidates, similar: ServiceView | undefined) {
    this.#selector = new EndpointSelector(service, candidates)
    this.#overrides = new PortOverrides(service.ports)
    this.nodeBits = this.#selector.candidates.list.reduce((bits, { endpoint }) => bits | bitsOf(endpoint), 0)
    const { availability } = this.#selector
    const known = similar?.service
    this.service = known?.isOf(service, availability) ? known : new ServiceItem(path, service, availability)
  }

  /** @param similar another revision of the service: what did not change since is taken over from it */
  static *make(
    entry: ServiceEntry & { readonly service: localv1.Service },
    similar: ServiceView | undefined,
  ): Work<ServiceView> {
    const { path, service } = entry
    const known = similar === undefined ? undefined : similar.#selector.candidates
    const candidates = yield* Candidates.make(service, endpointsOf(entry), known)
    yield
    return new ServiceView(path, service, candidates, similar)
  }

  /** Whether some nodes may use other endpoints because hints name them. */
  get hasNodeHints(): boolean {
    return this.#selector.hasNodeHints
  }

  /** Whether a node's zone matters. */
  get dependsOnZone(): boolean {
    return this.#selector.dependsOnZone
  }

  /** The nodes that endpoints are on, or meant for. Some more than once. */
  *nodes(): Generator<string> {
    for (const { endpoint } of this.#selector.candidates.list) {
      yield endpoint.node
      if (endpoint.hints) yield* endpoint.hints.nodes
    }
  }

  /** @param similar what nodes like this one saw in another revision: items that say the same are taken over from it */
  of(node: NodeTopology, similar?: SharedEndpoints): NodeServiceView {
    const hints = this.#selector.hintsFor(node)
    const view = this.#common(node.zone, hints, similar)
    if ((this.nodeBits & bitOf(node.name)) === 0) return view
    const own = this.#candidatesOf(node.name).flatMap((candidate) => this.#item(candidate, node, hints) ?? none)
    return own.length === 0 ? view : new NodeServiceView(this.service, view.shared, own)
  }

  /** The view of a node like this one that has no endpoints of its own. */
  withoutOwn(node: NodeTopology, similar?: SharedEndpoints): NodeServiceView {
    return this.#common(node.zone, this.#selector.hintsFor(node), similar)
  }

  /** The item of this path in the view of a node without endpoints of its own. */
  itemAt(path: string, zone: string, hints: readonly Hint[]): EndpointItem | undefined {
    const candidate = this.#selector.candidates.atPath(path)
    return candidate && this.#item(candidate, { name: '', zone }, hints)
  }

  selectsLike(other: ServiceView | undefined): boolean {
    return other !== undefined && this.#selector.selectsLike(other.#selector)
  }

  /** The nodes whose own endpoints, or the hints for them, differ from those in another revision; undefined where others may differ too. */
  nodesChangedSince(other: ServiceView | undefined): ReadonlySet<string> | undefined {
    if (other === undefined || !this.selectsLike(other)) return undefined
    return this.#selector.candidates.nodesOfDifference(other.#selector.candidates)
  }

  #common(zone: string, hints: readonly Hint[], similar: SharedEndpoints | undefined): NodeServiceView {
    if (hints.length === 0) {
      this.#unhinted ??= this.#share('', hints, similar)
      return this.#unhinted
    }
    const zoneThatCounts = hints.includes('zone') ? zone : ''
    const key = `${hints.join()} ${zoneThatCounts}`
    this.#hinted ??= new Map()
    let view = this.#hinted.get(key)
    if (!view) {
      view = this.#share(zoneThatCounts, hints, similar)
      this.#hinted.set(key, view)
    }
    return view
  }

  /** The view of a node without a name: nothing is its own, and no hint is meant for it alone. */
  #share(zone: string, hints: readonly Hint[], similar: SharedEndpoints | undefined): NodeServiceView {
    const nobody = { name: '', zone }
    const known = similar?.items ?? none
    const isSame = similar?.isSelectedAs(this, zone, hints)
    const find = inOrder(known)
    const items: EndpointItem[] = []
    for (const candidate of this.#selector.candidates.list) {
      const before = known[find(candidate.endpoint)]
      const item = isSame && before ? before : this.#item(candidate, nobody, hints, before)
      if (item) items.push(item)
    }
    return new NodeServiceView(this.service, new SharedEndpoints(items.slice(), this, zone, hints), none)
  }

  #item(
    candidate: Candidate,
    node: NodeTopology,
    hints: readonly Hint[],
    known?: EndpointItem,
  ): EndpointItem | undefined {
    const selected = this.#selector.select(candidate, node, hints)
    if (!selected) return undefined
    const { path } = candidate
    return known?.path === path && known.isOf(selected) ? known : new EndpointItem(path, selected, this.#overrides)
  }

  #candidatesOf(node: string): readonly Candidate[] {
    const { candidates } = this.#selector
    if (node === '' || candidates.list.length > few) return candidates.ofNode(node)
    return candidates.list.filter(({ endpoint }) => endpoint.node === node || endpoint.hints?.nodes.includes(node))
  }
}

/**
 * One of 32 bits for a node's name. Of most services a node runs nothing, and this says so without a look at their endpoints: when a node
 * starts to watch, that look would be most of the work.
 */
function bitOf(node: string): number {
  let hash = node.length
  for (let index = Math.max(0, node.length - 4); index < node.length; index++) hash = hash * 37 + node.charCodeAt(index)
  return 1 << ((hash ^ (hash >> 5)) & 31)
}

const bitsOf = ({ node, hints }: EndpointRecord): number =>
  hints ? hints.nodes.reduce((bits, name) => bits | bitOf(name), bitOf(node)) : bitOf(node)

/** The views of a store's services. A view lives as long as its entry: as long as the store holds it, or keeps it for a watcher. */
export class ServiceViews {
  readonly #views = new WeakMap<ServiceEntry, ServiceView>()
  /** Those that are worked out in turns. Everybody who needs one goes on where the last one stopped. */
  readonly #unfinished = new WeakMap<ServiceEntry, Work<ServiceView>>()

  /** Undefined for an entry without a service, which is in nobody's view. */
  of(entry: ServiceEntry | undefined): ServiceView | undefined {
    return entry && (this.#views.get(entry) ?? finish(this.make(entry)))
  }

  *make(entry: ServiceEntry | undefined, similar?: ServiceView): Work<ServiceView | undefined> {
    const { service } = entry ?? {}
    if (!entry || !service) return undefined
    const work = this.#unfinished.get(entry) ?? ServiceView.make({ ...entry, service }, similar)
    for (;;) {
      const known = this.#views.get(entry)
      if (known) return known
      this.#unfinished.set(entry, work)
      const step = work.next()
      if (step.done) {
        this.#unfinished.delete(entry)
        this.#views.set(entry, step.value)
      } else yield
    }
  }
}

/** All endpoints, of whatever source. Nearly every service has one source. */
function endpointsOf({ sources }: ServiceEntry): readonly EndpointRecord[] {
  if (sources.size > 1) return (none as readonly EndpointRecord[]).concat(...sources.values())
  for (const endpoints of sources.values()) return endpoints
  return none
}
