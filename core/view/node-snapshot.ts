import type { ServiceEntry } from '../store/index.js'
import type { CommonState, WholeState } from './change-set.js'
import { type Batch, batchOf, type NodeItem } from './items.js'
import type { NodeTopology } from './selection.js'
import type { ServiceView, ServiceViews } from './service-view.js'
import { SharedWork, type Work } from './work.js'

/**
 * All services at one revision as the nodes see them, for watchers that start. Most of what two nodes see is the same: it is put together once for all
 * nodes of a zone, and each node gets what is its own instead of the part that is not.
 */
export class NodeSnapshot {
  readonly #views: readonly ServiceView[]
  /** The services that a node sees in its own way: it runs endpoints of them, or some are meant for it. */
  readonly #ownOf: ReadonlyMap<string, readonly ServiceView[]>
  readonly #dependsOnZone: boolean
  readonly #common = new Map<string, SharedWork<Common>>()

  constructor(
    views: readonly ServiceView[],
    ownOf: ReadonlyMap<string, readonly ServiceView[]>,
    dependsOnZone: boolean,
  ) {
    this.#views = views
    this.#ownOf = ownOf
    this.#dependsOnZone = dependsOnZone
  }

  static *make(entries: readonly ServiceEntry[], services: ServiceViews): Work<NodeSnapshot> {
    const views: ServiceView[] = []
    const ownOf = new Map<string, ServiceView[]>()
    let dependsOnZone = false
    for (const entry of entries) {
      const view = yield* services.make(entry)
      yield
      if (!view) continue
      views.push(view)
      dependsOnZone ||= view.dependsOnZone
      for (const node of view.nodes()) {
        const own = ownOf.get(node)
        if (!own) ownOf.set(node, [view])
        else if (own.at(-1) !== view) own.push(view)
      }
    }
    return new NodeSnapshot(views, ownOf, dependsOnZone)
  }

  /** @param head what the node is told beside services and endpoints */
  *of(node: NodeTopology, head: readonly NodeItem[]): Work<WholeState<NodeItem>> {
    const zone = this.#dependsOnZone ? node.zone : ''
    let making = this.#common.get(zone)
    if (!making) {
      making = new SharedWork(commonOf(this.#views, { name: '', zone }))
      this.#common.set(zone, making)
    }
    const common = yield* making.finish()
    const without: Batch<NodeItem>[] = []
    const own: Batch<NodeItem>[] = []
    for (const view of this.#ownOf.get(node.name) ?? []) {
      without.push(...(common.endpointsOf.get(view) ?? []))
      own.push(...view.of(node).batches)
    }
    return { head: batchOf(head), common, without, own }
  }
}

interface Common extends CommonState<NodeItem> {
  readonly endpointsOf: ReadonlyMap<ServiceView, readonly Batch<NodeItem>[]>
}

/** What a node sees that runs nothing: first the services, then their endpoints. */
function* commonOf(views: readonly ServiceView[], nobody: NodeTopology): Work<Common> {
  const batches: Batch<NodeItem>[] = []
  const endpointsOf = new Map<ServiceView, readonly Batch<NodeItem>[]>()
  for (const view of views) for (const batch of view.service.batches) batches.push(batch)
  for (const view of views) {
    const { batches: endpoints } = view.withoutOwn(nobody)
    endpointsOf.set(view, endpoints)
    for (const batch of endpoints) batches.push(batch)
    yield
  }
  return { batches, endpointsOf }
}
