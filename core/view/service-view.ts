import { isSame, type localv1 } from '@kpng/api'
import { type EndpointPort, type EndpointRecord, none, type ServiceEntry } from '../store/index.js'
import { sameStrings } from '../store/records.js'
import { type Candidate, Candidates, inOrder } from './candidates.js'
import { SharedWork, type Work } from './schedule.js'
import {
  type Availability,
  EndpointSelector,
  type Hint,
  type NodeTopology,
  Scope,
  type SelectedEndpoint,
} from './selection.js'

// A service as the nodes see it: what all of them see alike, what those share that follow the same hints, and what a node has of its own.

/** A service, and for each of its ports whether any endpoint in the cluster serves it: the same to all nodes. */
export class CommonService {
  /** `namespace/name` */
  readonly path: string
  readonly message: localv1.Service
  readonly #service: localv1.Service
  readonly #availability: readonly Availability[]

  constructor(path: string, service: localv1.Service, availability: readonly Availability[]) {
    const ports = service.ports.map((port, index) => ({ ...port, servedFamilies: flagsOf(availability[index]) }))
    this.path = path
    this.message = { ...service, ports }
    this.#service = service
    this.#availability = availability
  }

  /** Whether it is made of this service, with endpoints there. */
  isOf(service: localv1.Service, availability: readonly Availability[]): boolean {
    const known = this.#availability
    return (
      this.#service === service &&
      availability.every(({ v4, v6 }, port) => v4 === known[port]?.v4 && v6 === known[port]?.v6)
    )
  }

  /** By content too: a service may change and change back. */
  isSameAs(other: CommonService): boolean {
    return this === other || isSame(this.message, other.message)
  }
}

const flagsOf = (available: Availability | undefined): localv1.FamilyFlags => ({
  $typeName: 'localv1.FamilyFlags',
  v4: available?.v4 ?? false,
  v6: available?.v6 ?? false,
})

/** An endpoint as one kind of node uses it. Its message is made when asked for: there are too many of them to keep. */
export class NodeEndpoint implements SelectedEndpoint {
  /** Its name among the endpoints of the service. */
  readonly key: string
  readonly endpoint: EndpointRecord
  readonly local: boolean
  readonly scopes: number
  readonly portScopes: readonly number[] | undefined
  readonly #ports: EndpointPorts

  constructor(key: string, { endpoint, local, scopes, portScopes }: SelectedEndpoint, ports: EndpointPorts) {
    this.key = key
    this.endpoint = endpoint
    this.local = local
    this.scopes = scopes
    this.portScopes = portScopes
    this.#ports = ports
  }

  /**
   * Written out rather than made by `create`: this is the one message there are tens of thousands of at the start. For the same
   * reason it shares its lists with the record.
   */
  get message(): localv1.Endpoint {
    const { hostname, v4, v6, conditions } = this.endpoint
    const message: localv1.Endpoint = {
      $typeName: 'localv1.Endpoint',
      hostname,
      ips: { $typeName: 'localv1.IPSet', v4: v4 as string[], v6: v6 as string[] },
      local: this.local,
      portOverrides: this.#ports.of(this),
      scopes: scopesMessages[this.scopes] as localv1.EndpointScopes,
    }
    const { ready, serving, terminating } = conditions
    // Plainly ready endpoints, nearly all, leave the field out.
    if (!ready || !serving || terminating) {
      message.conditions = { $typeName: 'localv1.EndpointConditions', ready, serving, terminating }
    }
    return message
  }

  /** Whether it is the endpoint of this selection. */
  isOf({ endpoint, local, scopes, portScopes }: SelectedEndpoint): boolean {
    if (this.portScopes || portScopes) return false
    return this.endpoint === endpoint && this.local === local && this.scopes === scopes
  }

  /** Whether a node that has the one would learn nothing from the other. By content too: an endpoint may change and change back. */
  isSameAs(other: NodeEndpoint): boolean {
    return this === other || this.isOf(other) || isSame(this.message, other.message)
  }
}

/** The ports of a service's endpoints as messages. The endpoints of a slice share the list of its ports: their messages share it too. */
class EndpointPorts {
  readonly #servicePorts: readonly localv1.PortMapping[]
  #last: { readonly of: EndpointRecord['ports']; readonly messages: localv1.PortName[] } | undefined

  constructor(servicePorts: readonly localv1.PortMapping[]) {
    this.#servicePorts = servicePorts
  }

  of({ endpoint: { ports }, scopes, portScopes }: SelectedEndpoint): localv1.PortName[] {
    if (portScopes) return this.#withScopes(ports, scopes, portScopes)
    if (!this.#last || this.#last.of !== ports) {
      const messages = (ports ?? none).map((port) => Object.freeze(portName(port)))
      this.#last = { of: ports, messages: Object.freeze(messages) as localv1.PortName[] }
    }
    return this.#last.messages
  }

  #withScopes(ports: EndpointRecord['ports'], scopes: number, portScopes: readonly number[]): localv1.PortName[] {
    return (ports ?? none).map((port) => {
      const own = portScopes[this.#servicePorts.findIndex(({ name }) => name === port.name)]
      if (own === undefined || own === scopes) return portName(port)
      return { ...portName(port), scopes: scopesMessages[own] as localv1.EndpointScopes }
    })
  }
}

const portName = ({ name, port, protocol }: EndpointPort): localv1.PortName => ({
  $typeName: 'localv1.PortName',
  name,
  port,
  ...(protocol !== undefined && { protocol }),
})

/** Every combination, shared by all endpoints. */
const scopesMessages: readonly localv1.EndpointScopes[] = Array.from({ length: 8 }, (_, bits) =>
  Object.freeze({
    $typeName: 'localv1.EndpointScopes',
    internal: (bits & Scope.internal) !== 0,
    external: (bits & Scope.external) !== 0,
    cluster: (bits & Scope.cluster) !== 0,
  }),
)

/** Up to so many are looked through: an index for each of thousands of small services would be most of their memory. */
const few = 16

/** The endpoints of a service that many nodes use alike: all that follow the same hints and, where zones matter, are in one zone. */
export class SharedEndpoints {
  readonly list: readonly NodeEndpoint[]
  readonly #view: ServiceView | undefined
  readonly #zone: string
  readonly #hints: readonly Hint[]

  constructor(list: readonly NodeEndpoint[], view?: ServiceView, zone = '', hints: readonly Hint[] = none) {
    this.list = list
    this.#view = view
    this.#zone = zone
    this.#hints = hints
  }

  /** The endpoint of this key, or one that says the same. */
  get(key: string): NodeEndpoint | undefined {
    if (this.list.length <= few) return this.list.find((endpoint) => endpoint.key === key)
    return this.#view?.endpointOf(key, this.#zone, this.#hints)
  }

  /** Whether an endpoint that was here is the same in another view of the service. */
  isSelectedAs(view: ServiceView, zone: string, hints: readonly Hint[]): boolean {
    return this.#zone === zone && sameStrings(this.#hints, hints) && view.selectsLike(this.#view)
  }
}

/** A service as one node sees it: its own endpoints laid over those that it shares with other nodes. */
export class NodeService {
  readonly service: CommonService
  readonly shared: SharedEndpoints
  /** Those that are not in `shared`, or say less there. */
  readonly own: readonly NodeEndpoint[]

  constructor(service: CommonService, shared: SharedEndpoints, own: readonly NodeEndpoint[]) {
    this.service = service
    this.shared = shared
    this.own = own
  }

  get(key: string): NodeEndpoint | undefined {
    return this.own.find((endpoint) => endpoint.key === key) ?? this.shared.get(key)
  }
}

/**
 * One service as the nodes of the cluster see it. Nodes that follow the same hints differ only in the endpoints that they run and in
 * those that are meant for them: so a thousand nodes with one endpoint each cost a thousand endpoints and not a million.
 */
export class ServiceView {
  readonly service: CommonService
  readonly #selector: EndpointSelector
  readonly #ports: EndpointPorts
  /** As nodes see it that have no endpoints of their own. */
  #unhinted: NodeService | undefined
  /** The same, by the hints that the nodes follow. */
  #hinted: Map<string, NodeService> | undefined
  /** The bits of all nodes that endpoints are on, or meant for. */
  readonly nodeBits: number

  constructor(path: string, service: localv1.Service, candidates: Candidates, similar: ServiceView | undefined) {
    this.#selector = new EndpointSelector(service, candidates)
    this.#ports = new EndpointPorts(service.ports)
    this.nodeBits = this.#selector.candidates.list.reduce((bits, { endpoint }) => bits | bitsOf(endpoint), 0)
    const { availability } = this.#selector
    const known = similar?.service
    this.service = known?.isOf(service, availability) ? known : new CommonService(path, service, availability)
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

  /** Which decisions follow hints that name the node. Nodes of one zone for which it is the same share what they see. */
  namedBy(node: string): string {
    return this.#selector.namedBy(node)
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

  /** @param similar what nodes like this one saw in another revision: endpoints that say the same are taken over from it */
  of(node: NodeTopology, similar?: SharedEndpoints): NodeService {
    const hints = this.#selector.hintsFor(node)
    const view = this.#common(node.zone, hints, similar)
    if ((this.nodeBits & bitOf(node.name)) === 0) return view
    const own = this.#candidatesOf(node.name).flatMap((candidate) => this.#endpoint(candidate, node, hints) ?? none)
    return own.length === 0 ? view : new NodeService(this.service, view.shared, own)
  }

  /** The hints that a node follows, decision by decision. */
  hintsFor(node: NodeTopology): readonly Hint[] {
    return this.#selector.hintsFor(node)
  }

  /** The view of a node that follows these hints and has no endpoints of its own. */
  withoutOwn(node: NodeTopology, hints = this.hintsFor(node), similar?: SharedEndpoints): NodeService {
    return this.#common(node.zone, hints, similar)
  }

  /** The endpoint of this key as a node without endpoints of its own uses it. */
  endpointOf(key: string, zone: string, hints: readonly Hint[]): NodeEndpoint | undefined {
    const candidate = this.#selector.candidates.withKey(key)
    return candidate && this.#endpoint(candidate, { name: '', zone }, hints)
  }

  selectsLike(other: ServiceView | undefined): boolean {
    return other !== undefined && this.#selector.selectsLike(other.#selector)
  }

  /** The nodes whose own endpoints, or the hints for them, differ from those in another revision; undefined where others may differ too. */
  nodesChangedSince(other: ServiceView | undefined): ReadonlySet<string> | undefined {
    if (other === undefined || !this.selectsLike(other)) return undefined
    return this.#selector.candidates.nodesOfDifference(other.#selector.candidates)
  }

  #common(zone: string, hints: readonly Hint[], similar: SharedEndpoints | undefined): NodeService {
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
  #share(zone: string, hints: readonly Hint[], similar: SharedEndpoints | undefined): NodeService {
    const nobody = { name: '', zone }
    const known = similar?.list ?? none
    const isSame = similar?.isSelectedAs(this, zone, hints)
    const find = inOrder(known)
    const endpoints: NodeEndpoint[] = []
    for (const candidate of this.#selector.candidates.list) {
      const before = known[find(candidate.endpoint)]
      const endpoint = isSame && before ? before : this.#endpoint(candidate, nobody, hints, before)
      if (endpoint) endpoints.push(endpoint)
    }
    return new NodeService(this.service, new SharedEndpoints(endpoints.slice(), this, zone, hints), none)
  }

  #endpoint(
    candidate: Candidate,
    node: NodeTopology,
    hints: readonly Hint[],
    known?: NodeEndpoint,
  ): NodeEndpoint | undefined {
    const selected = this.#selector.select(candidate, node, hints)
    if (!selected) return undefined
    const { key } = candidate
    return known?.key === key && known.isOf(selected) ? known : new NodeEndpoint(key, selected, this.#ports)
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
  readonly #making = new WeakMap<ServiceEntry, SharedWork<ServiceView>>();

  /**
   * Undefined for an entry without a service, which is in nobody's view.
   * @param similar another revision of the service: what did not change since is taken over from it
   */
  *make(entry: ServiceEntry | undefined, similar?: ServiceView): Work<ServiceView | undefined> {
    const { service } = entry ?? {}
    if (!entry || !service) return undefined
    let making = this.#making.get(entry)
    if (!making) {
      making = new SharedWork(ServiceView.make({ ...entry, service }, similar))
      this.#making.set(entry, making)
    }
    return making.result ?? (yield* making.finish())
  }
}

/** All endpoints, of whatever source. Nearly every service has one source. */
function endpointsOf({ sources }: ServiceEntry): readonly EndpointRecord[] {
  if (sources.size > 1) return (none as readonly EndpointRecord[]).concat(...sources.values())
  for (const endpoints of sources.values()) return endpoints
  return none
}
