import { create, toBinary } from '@bufbuild/protobuf'
import { globalPath, globalv1, localv1 } from '@kpng/api'
import { hash64 } from '../store/hash.js'
import {
  type Changed,
  type ChangeRange,
  type EndpointRecord,
  none,
  type ServiceEntry,
  type Store,
  sameMessage,
} from '../store/index.js'
import { type Batch, batchOf, type ChangeSet, type Trigger } from './change-set.js'
import { type DeleteItem, MessageItem, type SetItem } from './items.js'
import { StoreWatch } from './store-watch.js'

export interface GlobalWatchOptions {
  /** Sets beyond services, endpoints and nodes: GLOBAL_SERVICE_CIDRS. Default none. */
  readonly extraSets?: readonly localv1.Set[]
}

/** What the cluster is, as change sets: for relays. */
export class GlobalWatch extends StoreWatch {
  readonly #withServiceCidrs: boolean

  constructor(store: Store, { extraSets = [] }: GlobalWatchOptions = {}) {
    super(store)
    this.#withServiceCidrs = extraSets.includes(localv1.Set.GLOBAL_SERVICE_CIDRS)
  }

  protected everything(): () => Generator<Batch> {
    const entries = this.store.entries()
    const head = [...this.store.nodes.values()].map(nodeInfoItem)
    if (this.#withServiceCidrs) head.push(...[...this.store.serviceCidrs.values()].map(cidrItem))
    return function* () {
      yield batchOf(head)
      for (const entry of entries) if (entry.service) yield batchOf([serviceInfoItem(entry.service)])
      for (const entry of entries) yield batchOf(endpointItems(entry).values())
    }
  }

  protected changes(range: ChangeRange): ChangeSet | undefined {
    const head: SetItem[] = []
    const tail: DeleteItem[] = []
    collect(range.nodes, localv1.Set.GLOBAL_NODE_INFOS, nodeInfoItem, head, tail)
    if (this.#withServiceCidrs) collect(range.serviceCidrs, localv1.Set.GLOBAL_SERVICE_CIDRS, cidrItem, head, tail)
    const sets: SetItem[] = []
    const endpoints: SetItem[] = []
    const deletedEndpoints: DeleteItem[] = []
    const deletedServices: DeleteItem[] = []
    const triggers: Trigger[] = []
    for (const [path, { before, after, triggerUnixMs }] of range.services) {
      if (after?.service && !sameMessage(before?.service, after.service)) sets.push(serviceInfoItem(after.service))
      if (before?.service && !after?.service)
        deletedServices.push({ set: localv1.Set.GLOBAL_SERVICE_INFOS, path: serviceInfoPath(before) })
      const old = before ? endpointItems(before) : new Map<string, SetItem>()
      const now = after ? endpointItems(after) : new Map<string, SetItem>()
      for (const [key, item] of now) if (!old.has(key)) endpoints.push(item)
      for (const [key, item] of old) if (!now.has(key)) deletedEndpoints.push({ set: item.set, path: item.path })
      if (triggerUnixMs !== undefined) triggers.push({ service: path, unixMs: triggerUnixMs })
    }
    const deletes = [...deletedEndpoints, ...deletedServices, ...tail]
    return this.changeSet(range, [...head, ...sets, ...endpoints], deletes, triggers)
  }
}

function collect<T>(
  changes: ReadonlyMap<string, Changed<T>>,
  set: localv1.Set,
  item: (thing: T) => SetItem,
  sets: SetItem[],
  deletes: DeleteItem[],
): void {
  for (const [name, { after }] of changes) {
    if (after === undefined) deletes.push({ set, path: globalPath({ name }) })
    else sets.push(item(after))
  }
}

const serviceInfoPath = ({ namespace, name }: { namespace: string; name: string }) => globalPath({ namespace, name })

const serviceInfos = new WeakMap<localv1.Service, SetItem>()

function serviceInfoItem(service: localv1.Service): SetItem {
  let item = serviceInfos.get(service)
  if (!item) {
    const hash = hash64(toBinary(localv1.ServiceSchema, service))
    const info = create(globalv1.ServiceInfoSchema, { hash, service })
    item = new MessageItem(localv1.Set.GLOBAL_SERVICE_INFOS, serviceInfoPath(service), globalv1.ServiceInfoSchema, info)
    serviceInfos.set(service, item)
  }
  return item
}

function nodeInfoItem(node: globalv1.Node): SetItem {
  const hash = hash64(toBinary(globalv1.NodeSchema, node))
  const info = create(globalv1.NodeInfoSchema, { hash, node })
  return new MessageItem(localv1.Set.GLOBAL_NODE_INFOS, globalPath({ name: node.name }), globalv1.NodeInfoSchema, info)
}

const cidrItem = (cidr: localv1.ServiceCIDR): SetItem =>
  new MessageItem(localv1.Set.GLOBAL_SERVICE_CIDRS, globalPath({ name: cidr.name }), localv1.ServiceCIDRSchema, cidr)

/** An endpoint's path holds the hash of all that is said of it: what changes is a new endpoint and a deleted one. */
const endpointItemsOf = new WeakMap<ServiceEntry, ReadonlyMap<string, SetItem>>()

function endpointItems(entry: ServiceEntry): ReadonlyMap<string, SetItem> {
  const known = endpointItemsOf.get(entry)
  if (known) return known
  const items = new Map<string, SetItem>()
  for (const [source, endpoints] of entry.sources) {
    for (const endpoint of endpoints) {
      const item = endpointInfoItem(entry, source, endpoint)
      items.set(item.path, item)
    }
  }
  endpointItemsOf.set(entry, items)
  return items
}

const endpointInfos = new WeakMap<EndpointRecord, SetItem>()

function endpointInfoItem({ namespace, name }: ServiceEntry, source: string, endpoint: EndpointRecord): SetItem {
  const known = endpointInfos.get(endpoint)
  if (known?.path.startsWith(globalPath({ namespace, name, source }))) return known
  const info = endpointInfo(namespace, name, source, endpoint)
  info.hash = hash64(toBinary(globalv1.EndpointInfoSchema, info))
  const path = globalPath({ namespace, name, source, key: info.hash.toString(16) })
  const item = new MessageItem(localv1.Set.GLOBAL_ENDPOINT_INFOS, path, globalv1.EndpointInfoSchema, info)
  endpointInfos.set(endpoint, item)
  return item
}

function endpointInfo(
  namespace: string,
  serviceName: string,
  sourceName: string,
  endpoint: EndpointRecord,
): globalv1.EndpointInfo {
  const { v4, v6, hostname, ports, conditions, podName, node, zone, hints } = endpoint
  return create(globalv1.EndpointInfoSchema, {
    namespace,
    serviceName,
    sourceName,
    podName,
    endpoint: {
      hostname,
      ips: { v4: [...v4], v6: [...v6] },
      portOverrides: (ports ?? none).map(({ name, port }) => ({ name, port })),
    },
    conditions,
    noPorts: ports !== undefined && ports.length === 0,
    topology: { node, zone },
    ...(hints ? { hints: { zones: [...hints.zones], nodes: [...hints.nodes] } } : {}),
  })
}
