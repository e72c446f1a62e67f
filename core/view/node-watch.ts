import { type globalv1, localv1 } from '@kpng/api'
import type { Changed, ChangeRange, ServiceEntry, Store } from '../store/index.js'
import { type Batch, batchOf, type ChangeSet, type Trigger } from './change-set.js'
import { type DeleteItem, nodeItem, type SetItem, serviceCidrItem } from './items.js'
import type { NodeTopology } from './selection.js'
import { diffFor, diffForZone, isEmpty, type ServiceDiff } from './service-diff.js'
import { dependsOnZone, serviceOf, viewOf } from './service-view.js'
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
export class NodeWatch extends StoreWatch {
  readonly #nodeName: string
  readonly #withNode: boolean
  readonly #withServiceCidrs: boolean

  constructor(store: Store, { nodeName, extraSets = [] }: NodeWatchOptions) {
    super(store)
    this.#nodeName = nodeName
    this.#withNode = extraSets.includes(localv1.Set.NODES)
    this.#withServiceCidrs = extraSets.includes(localv1.Set.SERVICE_CIDRS)
  }

  protected everything(): () => Generator<Batch> {
    const entries = this.store.entries()
    const node = this.store.node(this.#nodeName)
    const topology = topologyOf(this.#nodeName, node)
    const head: SetItem[] = []
    if (this.#withNode && node) head.push(nodeItem(node))
    if (this.#withServiceCidrs) head.push(...[...this.store.serviceCidrs.values()].map(serviceCidrItem))
    return function* () {
      yield batchOf(head)
      yield batchOf(servicesOf(entries))
      for (const entry of entries) {
        const view = viewOf(entry, topology)
        if (view) yield view.batch
      }
    }
  }

  protected changes(range: ChangeRange): ChangeSet | undefined {
    const own = range.nodes.get(this.#nodeName)
    const now = topologyOf(this.#nodeName, this.store.node(this.#nodeName))
    const then = own ? topologyOf(this.#nodeName, own.before) : now
    const diffs: ServiceDiff[] = []
    const triggers: Trigger[] = []
    for (const [path, change] of range.services) {
      const diff = diffFor(change, then, now)
      if (isEmpty(diff)) continue
      diffs.push(diff)
      if (change.triggerUnixMs !== undefined) triggers.push({ service: path, unixMs: change.triggerUnixMs })
    }
    if (then.zone !== now.zone) {
      for (const entry of this.store.entries()) {
        if (range.services.has(entry.path) || !dependsOnZone(entry)) continue
        const diff = diffForZone(entry, then, now)
        if (!isEmpty(diff)) diffs.push(diff)
      }
    }
    return this.#assemble(range, diffs, triggers)
  }

  #assemble(range: ChangeRange, diffs: readonly ServiceDiff[], triggers: readonly Trigger[]): ChangeSet | undefined {
    const sets: SetItem[] = []
    const deletes: DeleteItem[] = []
    for (const diff of diffs) if (diff.service) sets.push(diff.service)
    for (const diff of diffs) sets.push(...diff.endpoints)
    for (const diff of diffs) deletes.push(...diff.deletedEndpoints)
    for (const diff of diffs) if (diff.deletedService) deletes.push(diff.deletedService)
    const node = range.nodes.get(this.#nodeName)
    if (this.#withNode && node) add(new Map([[this.#nodeName, node]]), localv1.Set.NODES, nodeItem, sets, deletes)
    if (this.#withServiceCidrs) add(range.serviceCidrs, localv1.Set.SERVICE_CIDRS, serviceCidrItem, sets, deletes)
    return this.changeSet(range, sets, deletes, triggers)
  }
}

function* servicesOf(entries: readonly ServiceEntry[]): Generator<SetItem> {
  for (const entry of entries) {
    const service = serviceOf(entry)
    if (service) yield service
  }
}

/** Nodes and CIDRs stand alone: they come before everything that is set and go after everything that is deleted. */
function add<T>(
  changes: ReadonlyMap<string, Changed<T>>,
  set: localv1.Set,
  item: (thing: T) => SetItem,
  sets: SetItem[],
  deletes: DeleteItem[],
): void {
  for (const [path, { after }] of changes) {
    if (after === undefined) deletes.push({ set, path })
    else sets.unshift(item(after))
  }
}
