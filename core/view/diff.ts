import { localv1 } from '@kpng/api'
import { type Changed, none, type ServiceEntry, sameMessage } from '../store/index.js'
import type { Trigger } from './change-set.js'
import {
  type Batch,
  type DeleteItem,
  type EndpointItem,
  mixedBatches,
  type ServiceItem,
  type SetItem,
  sayTheSame,
  sharedBatchOf,
} from './items.js'
import type { NodeTopology } from './selection.js'
import { type NodeServiceView, type ServiceView, type ServiceViews, SharedEndpoints } from './service-view.js'
import type { Work } from './work.js'

/** What those must be told who have one list of items and shall have another. */
export interface ItemDiff<Item extends SetItem> {
  readonly sets: readonly Item[]
  readonly deletes: readonly DeleteItem[]
}

/** Compares two lists by path. Costs little for what is the same at both ends, which nearly always is all but one. */
export function diffItems<Item extends SetItem>(before: readonly Item[], after: readonly Item[]): ItemDiff<Item> {
  if (before === after) return { sets: none, deletes: none }
  if (before.length === 0) return { sets: after, deletes: none }
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start++
  let end = 0
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const old = new Map<string, Item>()
  for (let index = start; index < before.length - end; index++) {
    const item = before[index] as Item
    old.set(item.path, item)
  }
  const sets: Item[] = []
  for (let index = start; index < after.length - end; index++) {
    const item = after[index] as Item
    const known = old.get(item.path)
    old.delete(item.path)
    if (!known || !sayTheSame(known, item)) sets.push(item)
  }
  return { sets, deletes: [...old.values()].map(({ set, path }) => ({ set, path })) }
}

/** Adds what is told of things that stand alone: nodes, service CIDRs. */
export function collect<T, Item extends SetItem>(
  changes: Iterable<readonly [string, Changed<T>]>,
  set: localv1.Set,
  itemOf: (thing: T) => Item,
  sets: Item[],
  deletes: DeleteItem[],
  pathOf = (name: string) => name,
): void {
  for (const [name, { before, after }] of changes) {
    if (sameMessage(before, after)) continue
    if (after === undefined) deletes.push({ set, path: pathOf(name) })
    else sets.push(itemOf(after))
  }
}

/** What a node must be told about one service, in this order. */
export interface ServiceDiff {
  readonly services: readonly Batch<ServiceItem>[]
  readonly endpoints: readonly Batch<EndpointItem>[]
  readonly deletedEndpoints: readonly Batch<DeleteItem>[]
  readonly deletedServices: readonly Batch<DeleteItem>[]
}

export const isEmpty = ({ services, endpoints, deletedEndpoints, deletedServices }: ServiceDiff): boolean =>
  services.length + endpoints.length + deletedEndpoints.length + deletedServices.length === 0

/** What a node must be told about several services. */
export const diffOfAll = (diffs: readonly ServiceDiff[]): ServiceDiff => ({
  services: diffs.flatMap(({ services }) => services),
  endpoints: diffs.flatMap(({ endpoints }) => endpoints),
  deletedEndpoints: diffs.flatMap(({ deletedEndpoints }) => deletedEndpoints),
  deletedServices: diffs.flatMap(({ deletedServices }) => deletedServices),
})

/** What nodes that see a service alike are told. */
interface SharedDiff extends ItemDiff<EndpointItem> {
  readonly forAll: ServiceDiff
}

/** The differences between views, worked out once for all who go from the one to the other. */
export class ServiceDiffs {
  /** A service that is not there. */
  readonly #nothing = new SharedEndpoints([])
  /** By the view before, then by the view after: kept as long as both are. */
  readonly #shared = new WeakMap<SharedEndpoints, WeakMap<SharedEndpoints, SharedDiff>>()

  /** Undefined stands for a service that is not there. */
  between(before: NodeServiceView | undefined, after: NodeServiceView | undefined): ServiceDiff {
    const shared = this.#sharedDiff(before, after)
    const own = [...(before?.own ?? none), ...(after?.own ?? none)]
    if (own.length === 0) return shared.forAll
    // What the node shares with others, put right where it sees endpoints of its own: before, after or both.
    const sets: EndpointItem[] = []
    const deletes: DeleteItem[] = []
    const paths = new Set(own.map(({ path }) => path))
    for (const path of paths) {
      const known = before?.get(path)
      const item = after?.get(path)
      if (known && !item) deletes.push({ set: localv1.Set.ENDPOINTS, path })
      if (item && !(known && sayTheSame(known, item))) sets.push(item)
    }
    return {
      ...shared.forAll,
      endpoints: mixedBatches(shared.sets, paths, sets),
      deletedEndpoints: mixedBatches(shared.deletes, paths, deletes),
    }
  }

  #sharedDiff(before: NodeServiceView | undefined, after: NodeServiceView | undefined): SharedDiff {
    const from = before?.shared ?? this.#nothing
    const to = after?.shared ?? this.#nothing
    let diffs = this.#shared.get(from)
    if (!diffs) {
      diffs = new WeakMap()
      this.#shared.set(from, diffs)
    }
    let diff = diffs.get(to)
    if (!diff) {
      diff = diffShared(before, after)
      diffs.set(to, diff)
    }
    return diff
  }
}

function diffShared(before: NodeServiceView | undefined, after: NodeServiceView | undefined): SharedDiff {
  const { sets, deletes } = diffItems(before?.shared.items ?? none, after?.shared.items ?? none)
  const isSame = before && after && sayTheSame(before.service, after.service)
  const forAll = {
    services: isSame ? none : (after?.service.batches ?? none),
    endpoints: sharedBatchOf(sets),
    deletedEndpoints: sharedBatchOf(deletes),
    deletedServices:
      before && !after ? sharedBatchOf([{ set: localv1.Set.SERVICES, path: before.service.path }]) : none,
  }
  return { sets, deletes, forAll }
}

/** The change of one service, or of the zone from which it is seen. */
export class ServiceStep {
  readonly trigger: Trigger | undefined
  readonly #before: ServiceView | undefined
  readonly #after: ServiceView | undefined
  readonly #diffs: ServiceDiffs

  constructor(
    trigger: Trigger | undefined,
    before: ServiceView | undefined,
    after: ServiceView | undefined,
    diffs: ServiceDiffs,
  ) {
    this.trigger = trigger
    this.#before = before
    this.#after = after
    this.#diffs = diffs
  }

  static *make(
    path: string,
    { before, after, triggerUnixMs }: Changed<ServiceEntry>,
    views: ServiceViews,
    diffs: ServiceDiffs,
  ): Work<ServiceStep> {
    const trigger = triggerUnixMs === undefined ? undefined : { service: path, unixMs: triggerUnixMs }
    const viewBefore = yield* views.make(before)
    const viewAfter = yield* views.make(after, viewBefore)
    yield
    return new ServiceStep(trigger, viewBefore, viewAfter, diffs)
  }

  get dependsOnZone(): boolean {
    return (this.#before?.dependsOnZone || this.#after?.dependsOnZone) ?? false
  }

  /** The nodes that may be told something else than all others of their zone. Some more than once. */
  *ownNodes(): Generator<string> {
    const isByNode = this.#before?.hasNodeHints || this.#after?.hasNodeHints
    const changed = isByNode ? undefined : this.#after?.nodesChangedSince(this.#before)
    if (changed) yield* changed
    else {
      yield* this.#before?.nodes() ?? none
      yield* this.#after?.nodes() ?? none
    }
  }

  /** What a node is told, which may have changed its zone. */
  diff(nodeBefore: NodeTopology, nodeAfter: NodeTopology): ServiceDiff {
    const before = this.#before?.of(nodeBefore)
    return this.#diffs.between(before, this.#after?.of(nodeAfter, before?.shared))
  }

  /** What the nodes of a zone are told that are not in `ownNodes`. */
  *common(zone: string): Work<ServiceDiff> {
    const nobody = { name: '', zone }
    const before = this.#before?.withoutOwn(nobody)
    yield
    const after = this.#after?.withoutOwn(nobody, before?.shared)
    yield
    return this.#diffs.between(before, after)
  }
}
