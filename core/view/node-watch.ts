import { type globalv1, localv1 } from '@kpng/api'
import { type Changed, type ChangeRange, type ServiceEntry, type Store, sameMessage } from '../store/index.js'
import { type Batch, batchOf, type ChangeSet, type Trigger } from './change-set.js'
import { type DeleteItem, type NodeItem, nodeItem, serviceCidrItem } from './items.js'
import { type NodeViews, nodeViewsOf } from './node-views.js'
import type { NodeTopology } from './selection.js'
import { isEmpty, type ServiceDiff } from './service-diff.js'
import { StoreWatch } from './store-watch.js'

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

/** What one node should do, as change sets. */
export class NodeWatch extends StoreWatch<NodeItem> {
  readonly #views: NodeViews
  readonly #nodeName: string
  readonly #withNode: boolean
  readonly #withServiceCidrs: boolean

  constructor(store: Store, { nodeName, extraSets = [] }: NodeWatchOptions) {
    super(store)
    this.#views = nodeViewsOf(store)
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
      yield batchOf(head)
      yield batchOf(servicesOf(entries, views))
      for (const entry of entries) {
        const batch = views.batch(entry, topology)
        if (batch) yield batch
      }
    }
  }

  protected changes(range: ChangeRange): ChangeSet<NodeItem> | undefined {
    const own = range.nodes.get(this.#nodeName)
    const now = topologyOf(this.#nodeName, this.store.node(this.#nodeName))
    const then = own ? topologyOf(this.#nodeName, own.before) : now
    const diffs: ServiceDiff[] = []
    const triggers: Trigger[] = []
    for (const [path, change] of range.services) {
      const diff = this.#views.diff(change, then, now)
      if (isEmpty(diff)) continue
      diffs.push(diff)
      if (change.triggerUnixMs !== undefined) triggers.push({ service: path, unixMs: change.triggerUnixMs })
    }
    if (then.zone !== now.zone) {
      for (const entry of this.store.entries()) {
        if (range.services.has(entry.path) || !this.#views.dependOnZone(entry)) continue
        const diff = this.#views.diff({ before: entry, after: entry }, then, now)
        if (!isEmpty(diff)) diffs.push(diff)
      }
    }
    return this.#assemble(range, diffs, triggers)
  }

  #assemble(
    range: ChangeRange,
    diffs: readonly ServiceDiff[],
    triggers: readonly Trigger[],
  ): ChangeSet<NodeItem> | undefined {
    const sets: NodeItem[] = []
    const deletes: DeleteItem[] = []
    for (const diff of diffs) if (diff.service) sets.push(diff.service)
    for (const { endpoints } of diffs) for (const item of endpoints) sets.push(item)
    for (const { deletedEndpoints } of diffs) for (const item of deletedEndpoints) deletes.push(item)
    for (const diff of diffs) if (diff.deletedService) deletes.push(diff.deletedService)
    const node = range.nodes.get(this.#nodeName)
    if (this.#withNode && node) add(new Map([[this.#nodeName, node]]), localv1.Set.NODES, nodeItem, sets, deletes)
    if (this.#withServiceCidrs) add(range.serviceCidrs, localv1.Set.SERVICE_CIDRS, serviceCidrItem, sets, deletes)
    return this.changeSet(range, sets, deletes, triggers)
  }
}

function* servicesOf(entries: readonly ServiceEntry[], views: NodeViews): Generator<NodeItem> {
  for (const entry of entries) {
    const service = views.service(entry)
    if (service) yield service
  }
}

/** Nodes and CIDRs stand alone: they come before everything that is set and go after everything that is deleted. */
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
    else sets.unshift(item(after))
  }
}
