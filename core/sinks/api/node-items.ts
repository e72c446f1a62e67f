import { endpointPath, localv1 } from '@kpng/api'
import { none } from '../../store/index.js'
import type {
  CommonService,
  NodeChange,
  NodeEndpoint,
  NodeWatchOptions,
  ServiceChange,
  View,
  Watch,
  Work,
} from '../../view/index.js'
import { type Batch, batchOf, ChangeSet, inOneBatch, mixedBatches, sharedBatchOf, without } from './change-set.js'
import {
  collect,
  type DeleteItem,
  EndpointItem,
  type NodeItem,
  nodeItem,
  serviceCidrItem,
  serviceItem,
} from './item.js'

/** What a node is told of one service, or of several, in this order. */
interface ServiceBatches {
  readonly services: readonly Batch<NodeItem>[]
  readonly endpoints: readonly Batch<NodeItem>[]
  readonly deletedEndpoints: readonly Batch<DeleteItem>[]
  readonly deletedServices: readonly Batch<DeleteItem>[]
}

/** What the nodes of a zone are told alike. */
interface CommonBatches {
  readonly all: ServiceBatches
  /** The same in the order in which it is told. */
  readonly sets: readonly Batch<NodeItem>[]
  readonly deletes: readonly Batch<DeleteItem>[]
}

export interface NodeItemsOptions extends NodeWatchOptions {
  /** Sets beyond services and endpoints: SERVICE_CIDRS, NODES (the node itself). Default none. */
  readonly extraSets?: readonly localv1.Set[]
}

/** After this number of services others may come in between. */
const servicesAtOnce = 64

/**
 * The changes of nodes as items with paths, as the contract has them. What many nodes are told is made into items once for all of them,
 * and kept as long as the view keeps it. Make one per view.
 */
export class NodeItems {
  readonly #view: View
  readonly #changeSets = new WeakMap<NodeChange, ChangeSet<NodeItem>>()
  readonly #services = new WeakMap<CommonService, readonly Batch<NodeItem>[]>()
  /** By the lists that nodes share. */
  readonly #endpoints = new WeakMap<readonly NodeEndpoint[], readonly EndpointItem[]>()
  readonly #batches = new WeakMap<ServiceChange, ServiceBatches>()
  readonly #changes = new WeakMap<readonly ServiceChange[], CommonBatches>()
  readonly #states = new WeakMap<readonly ServiceChange[], { readonly batches: readonly Batch<NodeItem>[] }>()

  constructor(view: View) {
    this.#view = view
  }

  /** Watches what one node should do. */
  watch({ extraSets = none, ...options }: NodeItemsOptions): Watch<ChangeSet<NodeItem>> {
    return this.#view.watchNode(options, (change) => this.#changeSet(change, extraSets))
  }

  /** The same object for all nodes that are told the same: after a change, that is nearly all of thousands. */
  *#changeSet(change: NodeChange, extraSets: readonly localv1.Set[]): Work<ChangeSet<NodeItem> | undefined> {
    const known = this.#changeSets.get(change)
    if (known) return known
    const made = change.isWhole ? yield* this.#whole(change, extraSets) : yield* this.#step(change, extraSets)
    if (made && !change.isWhole && !change.node && change.serviceCidrs.size === 0) this.#changeSets.set(change, made)
    return made
  }

  *#whole(change: NodeChange, extraSets: readonly localv1.Set[]): Work<ChangeSet<NodeItem>> {
    const { revision, common, own } = change
    let state = this.#states.get(common)
    if (!state) {
      const all = yield* this.#batchesOfAll(common)
      state = { batches: [...all.flatMap(({ services }) => services), ...all.flatMap(({ endpoints }) => endpoints)] }
      this.#states.set(common, state)
    }
    const endpointsOf = (changes: Iterable<ServiceChange>) =>
      [...changes].flatMap((one) => this.#batchesOf(one).endpoints)
    const [others, seen] = [endpointsOf(own.keys()), endpointsOf(own.values())]
    const { sets } = extrasOf(change, extraSets)
    return ChangeSet.ofWhole(revision, { head: batchOf(sets), common: state, without: others, own: seen })
  }

  /** Nodes and CIDRs stand alone: they come before everything that is set and go after everything that is deleted. */
  *#step(change: NodeChange, extraSets: readonly localv1.Set[]): Work<ChangeSet<NodeItem> | undefined> {
    const { revision, common, own, triggers, timeline } = change
    let batches = this.#changes.get(common)
    if (!batches) {
      batches = told(inOne(yield* this.#batchesOfAll(common)))
      this.#changes.set(common, batches)
    }
    const { sets, deletes } = own.size === 0 ? batches : this.#withOwn(batches.all, own)
    const extras = extrasOf(change, extraSets)
    const setBatches = extras.sets.length > 0 ? [...batchOf(extras.sets), ...sets] : sets
    const deleteBatches = extras.deletes.length > 0 ? [...deletes, ...batchOf(extras.deletes)] : deletes
    return ChangeSet.ofChange({ revision, setBatches, deleteBatches, triggers, timeline })
  }

  /** A node sees some services in its own way. That the services themselves are new, gone or different is the same to all nodes. */
  #withOwn(
    all: ServiceBatches,
    own: ReadonlyMap<ServiceChange, ServiceChange>,
  ): Pick<CommonBatches, 'sets' | 'deletes'> {
    const others = joined([...own.keys()].map((change) => this.#batchesOf(change)))
    const { endpoints, deletedEndpoints } = joined([...own.values()].map((change) => this.#batchesOf(change)))
    return told({
      ...all,
      endpoints: [...without(all.endpoints, others.endpoints), ...endpoints],
      deletedEndpoints: [...without(all.deletedEndpoints, others.deletedEndpoints), ...deletedEndpoints],
    })
  }

  *#batchesOfAll(changes: readonly ServiceChange[]): Work<ServiceBatches[]> {
    const all: ServiceBatches[] = []
    for (const change of changes) {
      all.push(this.#batchesOf(change))
      if (all.length % servicesAtOnce === 0) yield
    }
    return all
  }

  #batchesOf(change: ServiceChange): ServiceBatches {
    let batches = this.#batches.get(change)
    if (!batches) {
      batches = this.#makeBatches(change)
      this.#batches.set(change, batches)
    }
    return batches
  }

  #makeBatches({ path, after, hasNewService, shared, ownKeys, own }: ServiceChange): ServiceBatches {
    const isGone = hasNewService && !after
    const paths = new Set([...ownKeys].map((key) => endpointPath(path, key)))
    const item = (endpoint: NodeEndpoint) => new EndpointItem(path, endpoint)
    const gone = ({ key }: NodeEndpoint) => ({ set: localv1.Set.ENDPOINTS, path: endpointPath(path, key) })
    return {
      services: hasNewService && after ? this.#serviceBatch(after.service) : none,
      endpoints: mixedBatches<NodeItem>(this.#itemsOf(path, shared.set), paths, own.set.map(item)),
      deletedEndpoints: mixedBatches(shared.gone.map(gone), paths, own.gone.map(gone)),
      deletedServices: isGone ? sharedBatchOf([{ set: localv1.Set.SERVICES, path }]) : none,
    }
  }

  #serviceBatch(service: CommonService): readonly Batch<NodeItem>[] {
    let batch = this.#services.get(service)
    if (!batch) {
      batch = sharedBatchOf([serviceItem(service.path, service.message)])
      this.#services.set(service, batch)
    }
    return batch
  }

  #itemsOf(path: string, endpoints: readonly NodeEndpoint[]): readonly EndpointItem[] {
    let items = this.#endpoints.get(endpoints)
    if (!items) {
      items = endpoints.map((endpoint) => new EndpointItem(path, endpoint))
      this.#endpoints.set(endpoints, items)
    }
    return items
  }
}

/** The node itself and the service CIDRs, if the watcher asked for them. */
function extrasOf({ node, serviceCidrs }: NodeChange, extraSets: readonly localv1.Set[]) {
  const sets: NodeItem[] = []
  const deletes: DeleteItem[] = []
  if (node && extraSets.includes(localv1.Set.NODES)) {
    const name = (node.after ?? node.before)?.name ?? ''
    collect([[name, node]], localv1.Set.NODES, nodeItem, sets, deletes)
  }
  if (serviceCidrs.size > 0 && extraSets.includes(localv1.Set.SERVICE_CIDRS)) {
    collect(serviceCidrs, localv1.Set.SERVICE_CIDRS, serviceCidrItem, sets, deletes)
  }
  return { sets, deletes }
}

const told = (all: ServiceBatches): CommonBatches => ({
  all,
  sets: [...all.services, ...all.endpoints],
  deletes: [...all.deletedEndpoints, ...all.deletedServices],
})

const joined = (all: readonly ServiceBatches[]): ServiceBatches => ({
  services: all.flatMap(({ services }) => services),
  endpoints: all.flatMap(({ endpoints }) => endpoints),
  deletedEndpoints: all.flatMap(({ deletedEndpoints }) => deletedEndpoints),
  deletedServices: all.flatMap(({ deletedServices }) => deletedServices),
})

/** In as few batches as possible: all their frames are shared. */
function inOne(all: readonly ServiceBatches[]): ServiceBatches {
  const { services, endpoints, deletedEndpoints, deletedServices } = joined(all)
  return {
    services: inOneBatch(services),
    endpoints: inOneBatch(endpoints),
    deletedEndpoints: inOneBatch(deletedEndpoints),
    deletedServices: inOneBatch(deletedServices),
  }
}
