import { type globalv1, localv1 } from '@kpng/api'
import { type Changed, type ChangeRange, none, type ServiceEntry, type Store, sameMessage } from '../store/index.js'
import type { ChangeSet, Trigger } from './change-set.js'
import { isEmpty, type ServiceDiff, ServiceDiffs } from './diff.js'
import { type Batch, batchOf, type DeleteItem, type NodeItem, nodeItem, serviceCidrItem } from './items.js'
import type { NodeTopology } from './selection.js'
import { type ServiceView, ServiceViews } from './service-view.js'
import type { Turns } from './turns.js'
import { Watch, type Work } from './watch.js'

export interface NodeWatchOptions {
  readonly nodeName: string
  /** Sets beyond services and endpoints: SERVICE_CIDRS, NODES (the node itself). Default none. */
  readonly extraSets?: readonly localv1.Set[]
}

const zoneLabel = 'topology.kubernetes.io/zone'

/** A node that nobody knows, or whose zone is not set, still has a view. */
const topologyOf = (name: string, node: globalv1.Node | undefined): NodeTopology => ({
  name,
  zone: node?.topology?.zone || (node?.labels[zoneLabel] ?? ''),
})

/** What the nodes see of a store, worked out once for all watchers: the views of its services, and what changes make of them. */
export class NodeViews {
  readonly services = new ServiceViews()
  readonly #diffs = new ServiceDiffs()

  /** The difference that a change of a service, of the node's zone or of both makes to a node. */
  diff(change: Changed<ServiceEntry>, nodeBefore: NodeTopology, nodeAfter: NodeTopology): ServiceDiff {
    const viewBefore = this.services.of(change.before)
    const before = viewBefore?.of(nodeBefore)
    const after = this.services.of(change.after, viewBefore)?.of(nodeAfter, before?.shared)
    return this.#diffs.between(before, after)
  }
}

/** What one node should do, as change sets. */
export class NodeWatch extends Watch<NodeItem> {
  readonly #views: NodeViews
  readonly #nodeName: string
  readonly #withNode: boolean
  readonly #withServiceCidrs: boolean

  constructor(store: Store, turns: Turns, views: NodeViews, { nodeName, extraSets = [] }: NodeWatchOptions) {
    super(store, turns)
    this.#views = views
    this.#nodeName = nodeName
    this.#withNode = extraSets.includes(localv1.Set.NODES)
    this.#withServiceCidrs = extraSets.includes(localv1.Set.SERVICE_CIDRS)
  }

  protected everything(): () => Generator<Batch<NodeItem>> {
    const views = this.#views
    const entries = this.store.entries()
    const node = this.store.node(this.#nodeName)
    const topology = topologyOf(this.#nodeName, node)
    const head: NodeItem[] = []
    if (this.#withNode && node) head.push(nodeItem(node))
    if (this.#withServiceCidrs) head.push(...[...this.store.serviceCidrs.values()].map(serviceCidrItem))
    return function* () {
      yield* batchOf(head)
      const served: ServiceView[] = []
      for (const entry of entries) {
        const view = views.services.of(entry)
        if (!view) continue
        served.push(view)
        for (const batch of view.service.batches) yield batch
      }
      for (const view of served) for (const batch of view.of(topology).batches) yield batch
    }
  }

  protected *changes(range: ChangeRange): Work<ChangeSet<NodeItem> | undefined> {
    const own = range.nodes.get(this.#nodeName)
    const now = topologyOf(this.#nodeName, this.store.node(this.#nodeName))
    const then = own ? topologyOf(this.#nodeName, own.before) : now
    // The store may move on while this is worked out in turns.
    const unchanged =
      then.zone === now.zone ? none : this.store.entries().filter(({ path }) => !range.services.has(path))
    const diffs: ServiceDiff[] = []
    const triggers: Trigger[] = []
    for (const [path, change] of range.services) {
      const diff = this.#views.diff(change, then, now)
      yield
      if (isEmpty(diff)) continue
      diffs.push(diff)
      if (change.triggerUnixMs !== undefined) triggers.push({ service: path, unixMs: change.triggerUnixMs })
    }
    for (const entry of unchanged) {
      if (!this.#views.services.of(entry)?.dependsOnZone) continue
      const diff = this.#views.diff({ before: entry, after: entry }, then, now)
      yield
      if (!isEmpty(diff)) diffs.push(diff)
    }
    return this.#assemble(range, diffs, triggers)
  }

  /** Nodes and CIDRs stand alone: they come before everything that is set and go after everything that is deleted. */
  #assemble(
    range: ChangeRange,
    diffs: readonly ServiceDiff[],
    triggers: readonly Trigger[],
  ): ChangeSet<NodeItem> | undefined {
    const head: NodeItem[] = []
    const tail: DeleteItem[] = []
    const node = range.nodes.get(this.#nodeName)
    if (this.#withNode && node) add(new Map([[this.#nodeName, node]]), localv1.Set.NODES, nodeItem, head, tail)
    if (this.#withServiceCidrs) add(range.serviceCidrs, localv1.Set.SERVICE_CIDRS, serviceCidrItem, head, tail)
    const sets: Batch<NodeItem>[] = [...batchOf(head)]
    const deletes: Batch<DeleteItem>[] = []
    for (const { services } of diffs) sets.push(...services)
    for (const { endpoints } of diffs) sets.push(...endpoints)
    for (const { deletedEndpoints } of diffs) deletes.push(...deletedEndpoints)
    for (const { deletedServices } of diffs) deletes.push(...deletedServices)
    deletes.push(...batchOf(tail))
    return this.changeSet(range, sets, deletes, triggers)
  }
}

function add<T>(
  changes: ReadonlyMap<string, Changed<T>>,
  set: localv1.Set,
  item: (thing: T) => NodeItem,
  sets: NodeItem[],
  deletes: DeleteItem[],
): void {
  for (const [path, { before, after }] of changes) {
    if (sameMessage(before, after)) continue
    if (after === undefined) deletes.push({ set, path })
    else sets.push(item(after))
  }
}
