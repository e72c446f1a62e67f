import type { Changed, ServiceEntry, Store } from '../store/index.js'
import type { Batch } from './change-set.js'
import type { EndpointItem, ServiceItem } from './items.js'
import { PerEntry } from './per-entry.js'
import type { NodeTopology } from './selection.js'
import { type ServiceDiff, sharedDiff, withOwnEndpoints } from './service-diff.js'
import { isServed } from './service-view.js'
import { batchOfView, type NodeServiceView, ServiceViews } from './service-views.js'

/** What the nodes see of a store, worked out once for all watchers: the views of its services, and what changes make of them. */
export class NodeViews {
  readonly #services: PerEntry<ServiceViews | undefined>

  constructor(store: Store) {
    this.#services = new PerEntry({
      store,
      make: (entry, similar) => (isServed(entry) ? new ServiceViews(entry, similar) : undefined),
      retire: (views) => views?.forgetFrames(),
    })
  }

  service(entry: ServiceEntry): ServiceItem | undefined {
    return this.#services.of(entry)?.service
  }

  /** The endpoints of a service as a node sees them. */
  batch(entry: ServiceEntry, node: NodeTopology): Batch<EndpointItem> | undefined {
    const view = this.#view(entry, node)
    return view && batchOfView(view)
  }

  /** Whether a node's zone matters for this entry. */
  dependOnZone(entry: ServiceEntry): boolean {
    return this.#services.of(entry)?.dependOnZone ?? false
  }

  /** The difference that a change of a service, of the node's zone or of both makes to a node. */
  diff(change: Changed<ServiceEntry>, nodeBefore: NodeTopology, nodeAfter: NodeTopology): ServiceDiff {
    const before = change.before && this.#view(change.before, nodeBefore)
    const after = change.after && this.#view(change.after, nodeAfter)
    return withOwnEndpoints(sharedDiff(before?.shared, after?.shared), before, after)
  }

  #view(entry: ServiceEntry, node: NodeTopology): NodeServiceView | undefined {
    return this.#services.of(entry)?.of(node)
  }
}

const viewsOfStores = new WeakMap<Store, NodeViews>()

export function nodeViewsOf(store: Store): NodeViews {
  let views = viewsOfStores.get(store)
  if (!views) {
    views = new NodeViews(store)
    viewsOfStores.set(store, views)
  }
  return views
}
