import { create, toBinary } from '@bufbuild/protobuf'
import { globalPath, globalv1, localv1 } from '@kpng/api'
import {
  type ChangeRange,
  type EndpointRecord,
  none,
  type ServiceEntry,
  sameMessage,
  type Trigger,
} from '../../store/index.js'
import { hash64 } from '../../store/records.js'
import { type View, Watch, type Work } from '../../view/index.js'
import { type Batch, batchOf, ChangeSet, sharedBatchOf } from './change-set.js'
import { collect, type DeleteItem, MessageItem, type SetItem } from './item.js'

// The cluster as relays are told of it. An endpoint's path holds the hash of all that is said of it: one that changes is a new endpoint
// and a deleted one.

export interface ClusterWatchOptions {
  /** Sets beyond services, endpoints and nodes: GLOBAL_SERVICE_CIDRS. Default none. */
  readonly extraSets?: readonly localv1.Set[]
}

/** The endpoints of one source (an EndpointSlice), without those that say the same twice. */
interface SourceInfos {
  readonly records: readonly EndpointRecord[]
  readonly items: readonly SetItem[]
  readonly itemOf: ReadonlyMap<EndpointRecord, SetItem>
  readonly differences: WeakMap<SourceInfos, Difference>
}

interface Difference {
  readonly sets: readonly SetItem[]
  readonly deletes: readonly DeleteItem[]
}

interface EntryInfos {
  readonly services: readonly Batch<SetItem>[]
  readonly sources: Map<string, SourceInfos>
}

/** What relays are told of a store, worked out once for all of them. Make one per view. */
export class ClusterItems {
  readonly #view: View
  /** Kept as long as the entry. */
  readonly #infos = new WeakMap<ServiceEntry, EntryInfos>()

  constructor(view: View) {
    this.#view = view
  }

  /** Watches the whole cluster. */
  watch(options: ClusterWatchOptions = {}): Watch<ChangeSet> {
    return new ClusterWatch(this.#view, this, options)
  }

  /** @param similar those of another revision: what did not change since is taken over */
  *make(entry: ServiceEntry, similar?: ServiceEntry): Work<EntryInfos> {
    const known = similar && this.#infos.get(similar)
    let infos = this.#infos.get(entry)
    if (!infos) {
      const isSame = known && similar?.service === entry.service
      const services = isSame ? known.services : sharedBatchOf(entry.service ? [serviceInfoItem(entry.service)] : none)
      infos = { services, sources: new Map() }
      this.#infos.set(entry, infos)
    }
    // A watcher that comes in between continues where this one stopped.
    for (const [name, records] of entry.sources) {
      if (infos.sources.has(name)) continue
      infos.sources.set(name, infosOf(entry, name, records, known))
      yield
    }
    return infos
  }
}

/** What the cluster is, as change sets: for relays. */
class ClusterWatch extends Watch<ChangeSet> {
  readonly #infos: ClusterItems
  readonly #withServiceCidrs: boolean

  constructor({ store, turns }: View, infos: ClusterItems, { extraSets = [] }: ClusterWatchOptions) {
    super(store, turns)
    this.#infos = infos
    this.#withServiceCidrs = extraSets.includes(localv1.Set.GLOBAL_SERVICE_CIDRS)
  }

  protected *everything(revision: number): Work<ChangeSet> {
    const entries = this.store.entries()
    const head: SetItem[] = [...this.store.nodes.values()].map(nodeInfoItem)
    if (this.#withServiceCidrs) head.push(...[...this.store.serviceCidrs.values()].map(cidrItem))
    const infos: EntryInfos[] = []
    for (const entry of entries) infos.push(yield* this.#infos.make(entry))
    const batches: Batch<SetItem>[] = []
    for (const { services } of infos) batches.push(...services)
    for (const { sources } of infos) for (const { items } of sources.values()) batches.push(...sharedBatchOf(items))
    return ChangeSet.ofWhole(revision, { head: batchOf(head), common: { batches }, without: none, own: none })
  }

  protected *changes(range: ChangeRange): Work<ChangeSet | undefined> {
    const head: SetItem[] = []
    const tail: DeleteItem[] = []
    collect(range.nodes, localv1.Set.GLOBAL_NODE_INFOS, nodeInfoItem, head, tail, pathOfName)
    if (this.#withServiceCidrs)
      collect(range.serviceCidrs, localv1.Set.GLOBAL_SERVICE_CIDRS, cidrItem, head, tail, pathOfName)
    const services: Batch<SetItem>[] = []
    const endpoints: Batch<SetItem>[] = []
    const deletedEndpoints: Batch<DeleteItem>[] = []
    const deletedServices: DeleteItem[] = []
    const triggers: Trigger[] = []
    for (const [path, { before, after, triggerUnixMs }] of range.services) {
      const infosBefore = before && (yield* this.#infos.make(before))
      const infosAfter = after && (yield* this.#infos.make(after, before))
      if (!sameMessage(before?.service, after?.service)) {
        services.push(...(infosAfter?.services ?? none))
        if (before?.service && !after?.service) {
          deletedServices.push({ set: localv1.Set.GLOBAL_SERVICE_INFOS, path: pathOf(before) })
        }
      }
      for (const name of new Set([...(before?.sources.keys() ?? none), ...(after?.sources.keys() ?? none)])) {
        const { sets, deletes } = differenceOf(infosBefore?.sources.get(name), infosAfter?.sources.get(name))
        endpoints.push(...sharedBatchOf(sets))
        deletedEndpoints.push(...sharedBatchOf(deletes))
      }
      yield
      if (triggerUnixMs !== undefined) triggers.push({ service: path, unixMs: triggerUnixMs })
    }
    const setBatches = [...batchOf(head), ...services, ...endpoints]
    const deleteBatches = [...deletedEndpoints, ...batchOf([...deletedServices, ...tail])]
    return ChangeSet.ofChange({
      revision: range.revision,
      setBatches,
      deleteBatches,
      triggers,
      timeline: range,
    })
  }
}

const pathOf = ({ namespace, name }: { namespace: string; name: string }) => globalPath({ namespace, name })

const pathOfName = (name: string) => globalPath({ name })

/** The hash of all that is said of an endpoint is in its path. */
function differenceOf(before: SourceInfos | undefined, after: SourceInfos | undefined): Difference {
  const known = before && after && before.differences.get(after)
  if (known) return known
  const [old, now] = [before?.items ?? none, after?.items ?? none]
  const without = <T extends { readonly path: string }>(items: readonly T[], others: readonly SetItem[]) => {
    const paths = new Set(others.map(({ path }) => path))
    return paths.size === 0 ? items : items.filter(({ path }) => !paths.has(path))
  }
  const difference = { sets: without(now, old), deletes: without(old, now).map(({ set, path }) => ({ set, path })) }
  if (before && after) before.differences.set(after, difference)
  return difference
}

function infosOf(
  entry: ServiceEntry,
  source: string,
  records: readonly EndpointRecord[],
  similar: EntryInfos | undefined,
): SourceInfos {
  const known = similar?.sources.get(source)
  if (known?.records === records) return known
  const itemOf = new Map(
    records.map((record) => [record, known?.itemOf.get(record) ?? endpointItem(entry, source, record)]),
  )
  const items = [...new Map([...itemOf.values()].map((item) => [item.path, item])).values()]
  return { records, items, itemOf, differences: new WeakMap() }
}

function endpointItem({ namespace, name }: ServiceEntry, source: string, endpoint: EndpointRecord): SetItem {
  const { v4, v6, hostname, ports, conditions, podName, node, zone, hints } = endpoint
  const info = create(globalv1.EndpointInfoSchema, {
    namespace,
    serviceName: name,
    sourceName: source,
    podName,
    endpoint: {
      hostname,
      ips: { v4: [...v4], v6: [...v6] },
      portOverrides: (ports ?? none).map(({ name, port, protocol }) => ({
        name,
        port,
        ...(protocol !== undefined && { protocol }),
      })),
    },
    conditions,
    noPorts: ports !== undefined && ports.length === 0,
    topology: { node, zone },
    ...(hints ? { hints: { zones: [...hints.zones], nodes: [...hints.nodes] } } : {}),
  })
  info.hash = hash64(toBinary(globalv1.EndpointInfoSchema, info))
  const path = globalPath({ namespace, name, source, key: info.hash.toString(16) })
  return new MessageItem(localv1.Set.GLOBAL_ENDPOINT_INFOS, path, globalv1.EndpointInfoSchema, info)
}

function serviceInfoItem(service: localv1.Service): SetItem {
  const info = () => {
    const hash = hash64(toBinary(localv1.ServiceSchema, service))
    return create(globalv1.ServiceInfoSchema, { hash, service })
  }
  return new MessageItem(localv1.Set.GLOBAL_SERVICE_INFOS, pathOf(service), globalv1.ServiceInfoSchema, info)
}

function nodeInfoItem(node: globalv1.Node): SetItem {
  const info = () => {
    const hash = hash64(toBinary(globalv1.NodeSchema, node))
    return create(globalv1.NodeInfoSchema, { hash, node })
  }
  return new MessageItem(localv1.Set.GLOBAL_NODE_INFOS, pathOfName(node.name), globalv1.NodeInfoSchema, info)
}

const cidrItem = (cidr: localv1.ServiceCIDR): SetItem =>
  new MessageItem(localv1.Set.GLOBAL_SERVICE_CIDRS, pathOfName(cidr.name), localv1.ServiceCIDRSchema, cidr)
