import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { type GlobalPath, globalv1, localv1, messageOf, parseGlobalPath, servicePath } from '@kpng/api'
import type { Operations } from '@kpng/client'
import type { EndpointRecord, Transaction } from '../../store/index.js'
import type { Skips } from '../skips.js'
import { endpointRecord } from './endpoints.js'

/** The endpoints of one source, by the key that the upstream gave each of them. */
interface Source {
  readonly namespace: string
  readonly name: string
  readonly service: string
  readonly endpoints: Map<string, EndpointRecord>
}

/** What the upstream has told so far. The stream tells endpoints one by one, the store takes those of a source as a whole. */
export class RelayedState {
  readonly #skips: Skips
  readonly #services = new Map<string, localv1.Service>()
  readonly #nodes = new Map<string, globalv1.Node>()
  readonly #cidrs = new Map<string, localv1.ServiceCIDR>()
  readonly #sources = new Map<string, Source>()

  constructor(skips: Skips) {
    this.#skips = skips
  }

  /** Applies one change set to the store, as a whole. After a reset only what differs from the store is written. */
  apply({ reset, sets, deletes, triggers }: Operations, transaction: Transaction): void {
    if (reset) for (const known of [this.#services, this.#nodes, this.#cidrs, this.#sources]) known.clear()
    const touched = new Set<string>()
    for (const value of sets) this.#set(value, touched, reset ? undefined : transaction)
    for (const ref of deletes) this.#delete(ref, touched, transaction)
    if (reset) this.#writeAll(transaction)
    else
      this.#writeSources(
        touched,
        new Map(triggers.map(({ service, unixMs }) => [service, Number(unixMs)])),
        transaction,
      )
  }

  #set({ ref, bytes }: localv1.Value, touched: Set<string>, transaction: Transaction | undefined): void {
    const path = ref && this.#pathOf(ref)
    if (!ref || !path) return
    if (ref.set === localv1.Set.GLOBAL_SERVICE_INFOS) {
      const service = this.#decode(ref, globalv1.ServiceInfoSchema, bytes)?.service
      if (!service) return
      this.#services.set(ref.path, service)
      transaction?.setService(service)
    } else if (ref.set === localv1.Set.GLOBAL_NODE_INFOS) {
      const node = this.#decode(ref, globalv1.NodeInfoSchema, bytes)?.node
      if (!node) return
      this.#nodes.set(ref.path, node)
      transaction?.setNode(node)
    } else if (ref.set === localv1.Set.GLOBAL_SERVICE_CIDRS) {
      const cidr = this.#decode(ref, localv1.ServiceCIDRSchema, bytes)
      if (!cidr) return
      this.#cidrs.set(ref.path, cidr)
      transaction?.setServiceCidr(cidr)
    } else if (ref.set === localv1.Set.GLOBAL_ENDPOINT_INFOS && path.name !== '') {
      // The endpoints with an empty name are a Go server's index by source: each of them comes with its service too.
      const info = this.#decode(ref, globalv1.EndpointInfoSchema, bytes)
      if (info) touched.add(this.#setEndpoint(path, info))
    }
  }

  #delete(ref: localv1.Ref, touched: Set<string>, transaction: Transaction): void {
    const path = this.#pathOf(ref)
    if (!path) return
    this.#skips.forget(objectName(ref))
    if (ref.set === localv1.Set.GLOBAL_SERVICE_INFOS) {
      if (this.#services.delete(ref.path)) transaction.deleteService(path.namespace, path.name)
    } else if (ref.set === localv1.Set.GLOBAL_NODE_INFOS) {
      if (this.#nodes.delete(ref.path)) transaction.deleteNode(path.name)
    } else if (ref.set === localv1.Set.GLOBAL_SERVICE_CIDRS) {
      if (this.#cidrs.delete(ref.path)) transaction.deleteServiceCidr(path.name)
    } else if (ref.set === localv1.Set.GLOBAL_ENDPOINT_INFOS) {
      const key = sourceKey(path)
      if (this.#sources.get(key)?.endpoints.delete(path.key)) touched.add(key)
    }
  }

  #setEndpoint(path: GlobalPath, info: globalv1.EndpointInfo): string {
    const key = sourceKey(path)
    let source = this.#sources.get(key)
    if (!source) {
      source = { namespace: path.namespace, name: path.source, service: path.name, endpoints: new Map() }
      this.#sources.set(key, source)
    }
    source.endpoints.set(path.key, endpointRecord(info))
    return key
  }

  #writeAll(transaction: Transaction): void {
    transaction.replaceAll({
      services: [...this.#services.values()],
      nodes: [...this.#nodes.values()],
      serviceCidrs: [...this.#cidrs.values()],
      endpoints: [...this.#sources.values()].map(asWritten),
    })
  }

  /** Sources that are empty go first: one of them may have moved to another service, where it is written again. */
  #writeSources(touched: ReadonlySet<string>, triggers: ReadonlyMap<string, number>, transaction: Transaction): void {
    const sources = [...touched].map((key) => ({ key, source: this.#sources.get(key) as Source }))
    const triggerOf = ({ namespace, service }: Source) => triggers.get(servicePath(namespace, service))
    for (const { key, source } of sources) {
      if (source.endpoints.size > 0) continue
      this.#sources.delete(key)
      transaction.deleteEndpoints(source.namespace, source.name, triggerOf(source))
    }
    for (const { source } of sources) {
      if (source.endpoints.size > 0) transaction.setEndpoints(asWritten(source), triggerOf(source))
    }
  }

  #pathOf(ref: localv1.Ref): GlobalPath | undefined {
    const path = parseGlobalPath(ref.path)
    if (!path) this.#skips.report(objectName(ref), 'its path does not have four parts. It is left out.')
    return path
  }

  #decode<Desc extends DescMessage>(ref: localv1.Ref, schema: Desc, bytes: Uint8Array): MessageShape<Desc> | undefined {
    try {
      return fromBinary(schema, bytes)
    } catch (error) {
      this.#skips.report(objectName(ref), `it is no ${schema.typeName} (${messageOf(error)}). It is left out.`)
      return undefined
    }
  }
}

const objectName = ({ set, path }: localv1.Ref): string => `${localv1.Set[set] ?? set} ${path}`

/** With the service, since a source that moves from one service to another is two for a while. */
const sourceKey = ({ namespace, name, source }: GlobalPath): string => `${namespace}|${name}|${source}`

const asWritten = ({ namespace, name, service, endpoints }: Source) => ({
  namespace,
  name,
  service,
  endpoints: [...endpoints.values()],
})
