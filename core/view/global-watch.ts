import { create, type Message, toBinary } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { globalPath, globalv1, localv1 } from '@kpng/api'
import { hash64 } from '../store/hash.js'
import { type Changed, type ChangeRange, type Store, sameMessage } from '../store/index.js'
import { type Batch, batchOf, type ChangeSet, type Trigger } from './change-set.js'
import { diffInfos, type EndpointInfos, endpointInfosOf, itemsOfInfos } from './endpoint-infos.js'
import { type DeleteItem, MessageItem, type SetItem } from './items.js'
import { PerEntry } from './per-entry.js'
import { StoreWatch } from './store-watch.js'

export interface GlobalWatchOptions {
  /** Sets beyond services, endpoints and nodes: GLOBAL_SERVICE_CIDRS. Default none. */
  readonly extraSets?: readonly localv1.Set[]
}

/** What the cluster is, as change sets: for relays. */
export class GlobalWatch extends StoreWatch<SetItem> {
  readonly #withServiceCidrs: boolean
  readonly #endpointInfos: PerEntry<EndpointInfos>

  constructor(store: Store, { extraSets = [] }: GlobalWatchOptions = {}) {
    super(store)
    this.#endpointInfos = endpointInfosIn(store)
    this.#withServiceCidrs = extraSets.includes(localv1.Set.GLOBAL_SERVICE_CIDRS)
  }

  protected everything(): () => Generator<Batch> {
    const infos = this.#endpointInfos
    const entries = this.store.entries()
    const head = [...this.store.nodes.values()].map(nodeInfoItem)
    if (this.#withServiceCidrs) head.push(...[...this.store.serviceCidrs.values()].map(cidrItem))
    return function* () {
      yield batchOf(head)
      for (const entry of entries) if (entry.service) yield batchOf([serviceInfoItem(entry.service)])
      for (const entry of entries) yield batchOf(itemsOfInfos(infos.of(entry)))
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
      const infosBefore = before ? this.#endpointInfos.of(before) : noInfos
      const infosAfter = after ? this.#endpointInfos.of(after) : noInfos
      diffInfos(infosBefore, infosAfter, { sets: endpoints, deletes: deletedEndpoints })
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
  for (const [name, { before, after }] of changes) {
    if (sameMessage(before, after)) continue
    if (after === undefined) deletes.push({ set, path: globalPath({ name }) })
    else sets.push(item(after))
  }
}

const noInfos: EndpointInfos = new Map()

const serviceInfoPath = ({ namespace, name }: { namespace: string; name: string }) => globalPath({ namespace, name })

/** Its message holds a hash of itself. It is made when it is asked for: whoever sends it can then leave out what cannot be encoded. */
class HashedItem<T extends Message> implements SetItem {
  readonly set: localv1.Set
  readonly path: string
  readonly #schema: GenMessage<T>
  readonly #make: () => T
  #message: T | undefined
  frame?: Buffer

  constructor(set: localv1.Set, path: string, schema: GenMessage<T>, make: () => T) {
    this.set = set
    this.path = path
    this.#schema = schema
    this.#make = make
  }

  get message(): T {
    this.#message ??= this.#make()
    return this.#message
  }

  encode(): Uint8Array {
    return toBinary(this.#schema, this.message)
  }
}

const serviceInfos = new WeakMap<localv1.Service, SetItem>()

function serviceInfoItem(service: localv1.Service): SetItem {
  let item = serviceInfos.get(service)
  if (!item) {
    const info = () => {
      const hash = hash64(toBinary(localv1.ServiceSchema, service))
      return create(globalv1.ServiceInfoSchema, { hash, service })
    }
    item = new HashedItem(localv1.Set.GLOBAL_SERVICE_INFOS, serviceInfoPath(service), globalv1.ServiceInfoSchema, info)
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

const endpointInfosOfStores = new WeakMap<Store, PerEntry<EndpointInfos>>()

function endpointInfosIn(store: Store): PerEntry<EndpointInfos> {
  let infos = endpointInfosOfStores.get(store)
  if (!infos) {
    infos = new PerEntry({ store, make: endpointInfosOf })
    endpointInfosOfStores.set(store, infos)
  }
  return infos
}
