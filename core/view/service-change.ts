import { type Changed, none, type ServiceEntry, type Trigger } from '../store/index.js'
import type { Work } from './schedule.js'
import type { NodeTopology } from './selection.js'
import {
  type NodeEndpoint,
  type NodeService,
  type ServiceView,
  type ServiceViews,
  SharedEndpoints,
} from './service-view.js'

/** What is different between two lists of endpoints. */
export interface EndpointChanges {
  /** New ones, and those that say something else. */
  readonly set: readonly NodeEndpoint[]
  readonly gone: readonly NodeEndpoint[]
}

const noChanges: EndpointChanges = { set: none, gone: none }

/** Compares two lists by key. Costs little for what is the same at both ends, which nearly always is all but one. */
function compare(before: readonly NodeEndpoint[], after: readonly NodeEndpoint[]): EndpointChanges {
  if (before === after) return noChanges
  if (before.length === 0) return { set: after, gone: none }
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start++
  let end = 0
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const old = new Map<string, NodeEndpoint>()
  for (let index = start; index < before.length - end; index++) {
    const endpoint = before[index] as NodeEndpoint
    old.set(endpoint.key, endpoint)
  }
  const set: NodeEndpoint[] = []
  for (let index = start; index < after.length - end; index++) {
    const endpoint = after[index] as NodeEndpoint
    const known = old.get(endpoint.key)
    old.delete(endpoint.key)
    if (!known?.isSameAs(endpoint)) set.push(endpoint)
  }
  return { set, gone: [...old.values()] }
}

/** A service before and after a change, as one node sees it or as many nodes do. */
export interface ServiceChange {
  /** `namespace/name` */
  readonly path: string
  /** Undefined: the node did not know of the service, or does not any more. */
  readonly before: NodeService | undefined
  readonly after: NodeService | undefined
  /** Whether the service itself is new, gone or different. */
  readonly hasNewService: boolean
  /** What is different in the endpoints that many nodes share: the same object for all of them. */
  readonly shared: EndpointChanges
  /** The keys of the endpoints that the node sees in its own way, before or after: `own` says what is different in them, and not `shared`. */
  readonly ownKeys: ReadonlySet<string>
  readonly own: EndpointChanges
  /** Whether nothing is different for the node. */
  readonly isEmpty: boolean
}

const noKeys: ReadonlySet<string> = new Set()

/** Kept as long as the view of the service: nodes start again and again, and what is made of it is kept with it. */
const wholeServices = new WeakMap<NodeService, ServiceChange>()

/** All of a service, for a node that knows nothing. */
export function wholeService(after: NodeService): ServiceChange {
  const known = wholeServices.get(after)
  if (known) return known
  const { service, shared, own } = after
  const whole = {
    path: service.path,
    before: undefined,
    after,
    hasNewService: true,
    shared: { set: shared.list, gone: none },
    ownKeys: own.length === 0 ? noKeys : new Set(own.map(({ key }) => key)),
    own: { set: own, gone: none },
    isEmpty: false,
  }
  wholeServices.set(after, whole)
  return whole
}

/** Compares what nodes see. What many see alike is compared once for all of them. */
export class ServiceComparison {
  /** A service that is not there. */
  readonly #nothing = new SharedEndpoints([])
  /** By the endpoints before, then by those after: kept as long as both are. */
  readonly #shared = new WeakMap<SharedEndpoints, WeakMap<SharedEndpoints, ServiceChange>>()

  /** Undefined stands for a service that is not there. */
  between(path: string, before: NodeService | undefined, after: NodeService | undefined): ServiceChange {
    const common = this.#common(path, before, after)
    const ownKeys = new Set([...(before?.own ?? none), ...(after?.own ?? none)].map(({ key }) => key))
    if (ownKeys.size === 0) return common
    const set: NodeEndpoint[] = []
    const gone: NodeEndpoint[] = []
    for (const key of ownKeys) {
      const known = before?.get(key)
      const endpoint = after?.get(key)
      if (known && !endpoint) gone.push(known)
      if (endpoint && !known?.isSameAs(endpoint)) set.push(endpoint)
    }
    const { shared, hasNewService } = common
    const isShared = ({ key }: NodeEndpoint) => !ownKeys.has(key)
    const isEmpty =
      !hasNewService && set.length + gone.length === 0 && !shared.set.some(isShared) && !shared.gone.some(isShared)
    return { path, before, after, hasNewService, shared, ownKeys, own: { set, gone }, isEmpty }
  }

  #common(path: string, before: NodeService | undefined, after: NodeService | undefined): ServiceChange {
    const from = before?.shared ?? this.#nothing
    const to = after?.shared ?? this.#nothing
    let changes = this.#shared.get(from)
    if (!changes) {
      changes = new WeakMap()
      this.#shared.set(from, changes)
    }
    let change = changes.get(to)
    if (!change) {
      change = compareShared(path, before, after)
      changes.set(to, change)
    }
    return change
  }
}

function compareShared(path: string, before: NodeService | undefined, after: NodeService | undefined): ServiceChange {
  const shared = compare(before?.shared.list ?? none, after?.shared.list ?? none)
  const isSame = before && after ? before.service.isSameAs(after.service) : before === after
  const isEmpty = isSame && shared.set.length + shared.gone.length === 0
  return { path, before, after, hasNewService: !isSame, shared, ownKeys: noKeys, own: noChanges, isEmpty }
}

/** The change of one service, or of the zone from which it is seen, before anybody asks for a node. */
export class ServiceStep {
  readonly path: string
  readonly trigger: Trigger | undefined
  readonly #before: ServiceView | undefined
  readonly #after: ServiceView | undefined
  readonly #comparison: ServiceComparison

  constructor(
    path: string,
    trigger: Trigger | undefined,
    [before, after]: readonly [ServiceView | undefined, ServiceView | undefined],
    comparison: ServiceComparison,
  ) {
    this.path = path
    this.trigger = trigger
    this.#before = before
    this.#after = after
    this.#comparison = comparison
  }

  static *make(
    path: string,
    { before, after, triggerUnixMs }: Changed<ServiceEntry>,
    views: ServiceViews,
    comparison: ServiceComparison,
  ): Work<ServiceStep> {
    const trigger = triggerUnixMs === undefined ? undefined : { service: path, unixMs: triggerUnixMs }
    const viewBefore = yield* views.make(before)
    const viewAfter = yield* views.make(after, viewBefore)
    yield
    return new ServiceStep(path, trigger, [viewBefore, viewAfter], comparison)
  }

  get dependsOnZone(): boolean {
    return (this.#before?.dependsOnZone || this.#after?.dependsOnZone) ?? false
  }

  get hasNodeHints(): boolean {
    return (this.#before?.hasNodeHints || this.#after?.hasNodeHints) ?? false
  }

  /** Of nodes of one zone that are not in `ownNodes`, those for which it is the same are told the same. */
  namedBy(node: string): string {
    return (this.#after ?? this.#before)?.namedBy(node) ?? ''
  }

  /**
   * The nodes that may be told something else than all others of their zone. Some more than once.
   * @param byHints those that hints name are among them, although they follow the same hints before and after
   */
  *ownNodes(byHints: boolean): Generator<string> {
    const isByNode = byHints && this.hasNodeHints
    const changed = isByNode ? undefined : this.#after?.nodesChangedSince(this.#before)
    if (changed) yield* changed
    else {
      yield* this.#before?.nodes() ?? none
      yield* this.#after?.nodes() ?? none
    }
  }

  /** What changes for a node, which may have changed its zone. */
  of(nodeBefore: NodeTopology, nodeAfter: NodeTopology): ServiceChange {
    const before = this.#before?.of(nodeBefore)
    return this.#comparison.between(this.path, before, this.#after?.of(nodeAfter, before?.shared))
  }

  /**
   * What changes for the nodes that are not in `ownNodes`.
   * @param node one that hints name in the same way, after the change; or one without a name, for those that hints do not name
   */
  *common(node: NodeTopology): Work<ServiceChange> {
    // Before, the hints may have named this node in another way, but not the others like it.
    const isAlike = this.#after?.selectsLike(this.#before)
    const nobody = { name: '', zone: node.zone }
    const hints = isAlike ? this.#after?.hintsFor(node) : undefined
    const before = this.#before?.withoutOwn(nobody, hints)
    yield
    const after = this.#after?.withoutOwn(nobody, hints, before?.shared)
    yield
    return this.#comparison.between(this.path, before, after)
  }
}
