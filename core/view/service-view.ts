import type { localv1 } from '@kpng/api'
import { type EndpointRecord, none, type ServiceEntry } from '../store/index.js'
import { byNode, type OnNode } from './by-node.js'
import type { Batch } from './change-set.js'
import { uniquePath } from './endpoint-path.js'
import { EndpointItem, ServiceItem } from './items.js'
import { type NodeTopology, selectEndpoints } from './selection.js'
import type { ServiceDiff } from './service-diff.js'

/** An entry whose service is known. Others are in nobody's view. */
export type ServedEntry = ServiceEntry & { readonly service: localv1.Service }

export const isServed = (entry: ServiceEntry | undefined): entry is ServedEntry => entry?.service !== undefined

export interface ServiceViewOptions {
  readonly entry: ServedEntry
  readonly node: NodeTopology
  /** Whether more than one node sees it so. */
  readonly shared: boolean
  /** A view of the same service: items that say the same are taken over from it, and with them their bytes. */
  readonly similar: ServiceView | undefined
}

/** Up to so many are looked through: an index for each of thousands of small services would be most of their memory. */
const few = 16

/** One service as a node sees it. It is the batch of its endpoints, too. */
export class ServiceView implements Batch<EndpointItem> {
  readonly service: ServiceItem
  readonly items: readonly EndpointItem[]
  /** What this node does not use, though others may. */
  readonly leftOut: readonly EndpointRecord[]
  readonly shared: boolean
  frames?: Buffer
  /** What was told last to those who had this view, kept here for others who have it. */
  lastDiff?: { readonly to: ServiceView | undefined; readonly diff: ServiceDiff }
  readonly #byPath: Map<string, EndpointItem> | undefined
  /** Whether an endpoint could not have the path that it would have alone. */
  hasLongerPaths = false
  #onNode: OnNode<EndpointItem> | undefined

  constructor({ entry, node, shared, similar }: ServiceViewOptions) {
    const { service } = entry
    const { used, leftOut, availability } = selectEndpoints(service, endpointsOf(entry), node)
    const items: EndpointItem[] = []
    this.items = items
    this.#byPath = used.length > few ? new Map() : undefined
    const isTaken = (path: string) => {
      const taken = this.get(path) !== undefined
      if (taken) this.hasLongerPaths = true
      return taken
    }
    const nextOf = inOrder(similar?.items ?? none)
    for (const selected of used) {
      const next = nextOf(selected.endpoint)
      // The same string: it is found by identity, where another one would be hashed and compared.
      const knownPath = similar?.hasLongerPaths ? undefined : next?.path
      const path = uniquePath(entry.path, selected.endpoint, isTaken, knownPath)
      const known = next ?? similar?.get(path)
      const reusable = known?.path === path && known.isOf(selected)
      const item = reusable ? known : new EndpointItem(path, selected, service.ports)
      items.push(item)
      this.#byPath?.set(path, item)
    }
    this.leftOut =
      leftOut.length === 0
        ? none
        : leftOut.flatMap(({ endpoint, reason }) => (reason === 'duplicate' ? [] : [endpoint]))
    this.service = similar?.service.isOf(service, availability)
      ? similar.service
      : new ServiceItem(entry.path, service, availability)
    this.shared = shared
  }

  get(path: string): EndpointItem | undefined {
    return this.#byPath ? this.#byPath.get(path) : this.items.find((item) => item.path === path)
  }

  /** Those of the endpoints that are on a node. */
  itemsOn(node: string): readonly EndpointItem[] {
    const isThere = ({ endpoint }: EndpointItem) => endpoint.node === node
    if (this.items.length <= few) return this.items.some(isThere) ? this.items.filter(isThere) : none
    this.#onNode ??= byNode(this.items, ({ endpoint }) => endpoint.node)
    return this.#onNode(node)
  }
}

/** Finds the items of endpoints that are asked for in about the order that the items have: the next one, or one went. */
function inOrder(items: readonly EndpointItem[]): (endpoint: EndpointRecord) => EndpointItem | undefined {
  let at = 0
  return (endpoint) => {
    const found = items[at]?.endpoint === endpoint ? at : at + 1
    if (items[found]?.endpoint !== endpoint) return undefined
    at = found + 1
    return items[found]
  }
}

/** All endpoints, of whatever source. Nearly every service has one source. */
export function endpointsOf({ sources }: ServiceEntry): readonly EndpointRecord[] {
  if (sources.size > 1) return [...sources.values()].flat()
  for (const endpoints of sources.values()) return endpoints
  return none
}
