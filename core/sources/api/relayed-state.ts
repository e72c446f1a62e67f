import { fromBinary } from '@bufbuild/protobuf'
import { type GlobalPath, globalPath, globalv1, localv1, messageOf, parseGlobalPath, servicePath } from '@kpng/api'
import type { Operations } from '@kpng/client'
import type { EndpointRecord, EndpointSource, Transaction } from '../../store/index.js'
import type { Skips } from '../skips.js'
import { endpointProblem, nameCheck, nodeProblem, serviceCidrProblem, serviceProblem } from './checks.js'
import { EndpointReader } from './endpoints.js'

/** How the objects of one set are read, checked and written. */
interface Kind<T> {
  readonly read: (bytes: Uint8Array) => T | undefined
  readonly problem: (value: T) => string | undefined
  readonly pathOf: (value: T) => string
  readonly set: (transaction: Transaction, value: T) => void
  readonly delete: (transaction: Transaction, path: GlobalPath) => void
}

const services: Kind<localv1.Service> = {
  read: (bytes) => fromBinary(globalv1.ServiceInfoSchema, bytes).service,
  problem: serviceProblem,
  pathOf: ({ namespace, name }) => globalPath({ namespace, name }),
  set: (transaction, service) => transaction.setService(service),
  delete: (transaction, { namespace, name }) => transaction.deleteService(namespace, name),
}

const nodes: Kind<globalv1.Node> = {
  read: (bytes) => fromBinary(globalv1.NodeInfoSchema, bytes).node,
  problem: nodeProblem,
  pathOf: ({ name }) => globalPath({ name }),
  set: (transaction, node) => transaction.setNode(node),
  delete: (transaction, { name }) => transaction.deleteNode(name),
}

const serviceCidrs: Kind<localv1.ServiceCIDR> = {
  read: (bytes) => fromBinary(localv1.ServiceCIDRSchema, bytes),
  problem: serviceCidrProblem,
  pathOf: ({ name }) => globalPath({ name }),
  set: (transaction, cidr) => transaction.setServiceCidr(cidr),
  delete: (transaction, { name }) => transaction.deleteServiceCidr(name),
}

/** The objects of one kind that the upstream has told of, by path. */
class Objects<T> {
  readonly known = new Map<string, T>()
  readonly #kind: Kind<T>

  constructor(kind: Kind<T>) {
    this.#kind = kind
  }

  read(bytes: Uint8Array, path: string): Read<T> {
    const value = this.#kind.read(bytes)
    if (!value) return { value, problem: 'it is empty' }
    const expected = this.#kind.pathOf(value)
    // An object under another's path could not be deleted by its own.
    const isThere = path === expected ? undefined : `its path should be ${JSON.stringify(expected)}`
    return { value, problem: this.#kind.problem(value) ?? isThere }
  }

  /** @param transaction undefined while a whole state is read, which is written at its end */
  set(path: string, value: T, transaction: Transaction | undefined): void {
    this.known.set(path, value)
    if (transaction) this.#kind.set(transaction, value)
  }

  delete(path: string, transaction: Transaction | undefined): void {
    const parts = parseGlobalPath(path)
    if (this.known.delete(path) && transaction && parts) this.#kind.delete(transaction, parts)
  }
}

interface Read<T> {
  readonly value: T | undefined
  readonly problem: string | undefined
}

/** The endpoints of one source, by the key that the upstream gave each of them. */
interface Source {
  readonly namespace: string
  readonly name: string
  readonly service: string
  readonly endpoints: Map<string, EndpointRecord>
}

/**
 * What the upstream has told so far. The stream tells endpoints one by one, the store takes those of a source as a whole. What cannot be used
 * is left out and reported, as other sources do.
 */
export class RelayedState {
  readonly #skips: Skips
  readonly #endpoints = new EndpointReader()
  readonly #services = new Objects(services)
  readonly #nodes = new Objects(nodes)
  readonly #cidrs = new Objects(serviceCidrs)
  readonly #objects = new Map<localv1.Set, Objects<unknown>>([
    [localv1.Set.GLOBAL_SERVICE_INFOS, this.#services as Objects<unknown>],
    [localv1.Set.GLOBAL_NODE_INFOS, this.#nodes as Objects<unknown>],
    [localv1.Set.GLOBAL_SERVICE_CIDRS, this.#cidrs as Objects<unknown>],
  ])
  readonly #sources = new Map<string, Source>()
  #skipped = new Set<string>()

  constructor(skips: Skips) {
    this.#skips = skips
  }

  /** Applies one change set to the store, as a whole. After a reset only what differs from the store is written. */
  apply({ reset, sets, deletes, triggers }: Operations, transaction: Transaction): void {
    const skippedBefore = this.#skipped
    if (reset) {
      for (const { known } of this.#objects.values()) known.clear()
      this.#sources.clear()
      this.#skipped = new Set()
    }
    const touched = new Set<string>()
    for (const value of sets) this.#set(value, touched, reset ? undefined : transaction)
    for (const ref of deletes) this.#delete(ref, touched, transaction)
    if (reset) {
      this.#writeAll(transaction)
      for (const object of skippedBefore) if (!this.#skipped.has(object)) this.#skips.forget(object)
    } else {
      const triggerOf = new Map(triggers.map(({ service, unixMs }) => [service, Number(unixMs)]))
      this.#writeSources(touched, triggerOf, transaction)
    }
  }

  #set({ ref, bytes }: localv1.Value, touched: Set<string>, transaction: Transaction | undefined): void {
    const objects = ref && this.#objects.get(ref.set)
    if (ref?.set === localv1.Set.GLOBAL_ENDPOINT_INFOS) this.#setEndpoint(ref, bytes, touched)
    if (!ref || !objects) return
    const value = this.#read(ref, () => objects.read(bytes, ref.path))
    if (value) objects.set(ref.path, value, transaction)
    else objects.delete(ref.path, transaction)
  }

  #delete(ref: localv1.Ref, touched: Set<string>, transaction: Transaction): void {
    this.#skips.forget(objectName(ref))
    this.#skipped.delete(objectName(ref))
    this.#objects.get(ref.set)?.delete(ref.path, transaction)
    const path = parseGlobalPath(ref.path)
    if (ref.set !== localv1.Set.GLOBAL_ENDPOINT_INFOS || !path) return
    const key = sourceKey(path)
    if (this.#sources.get(key)?.endpoints.delete(path.key)) touched.add(key)
  }

  #setEndpoint(ref: localv1.Ref, bytes: Uint8Array, touched: Set<string>): void {
    const path = parseGlobalPath(ref.path)
    // The endpoints with an empty name are a Go server's index by source: each of them comes with its service too.
    if (path?.name === '') return
    const endpoint = this.#read(ref, () => {
      const value = this.#endpoints.read(bytes)
      return { value, problem: endpointPathProblem(path) ?? endpointProblem(value) }
    })
    if (!path || !endpoint) return
    const key = sourceKey(path)
    let source = this.#sources.get(key)
    if (!source) {
      source = { namespace: path.namespace, name: path.source, service: path.name, endpoints: new Map() }
      this.#sources.set(key, source)
    }
    source.endpoints.set(path.key, endpoint)
    touched.add(key)
  }

  /** Undefined for what cannot be used, which is reported. */
  #read<T>(ref: localv1.Ref, read: () => Read<T>): T | undefined {
    const object = objectName(ref)
    return this.#skips.reading(object, (report) => {
      let problem: string | undefined
      try {
        const result = read()
        if (!result.problem) {
          this.#skipped.delete(object)
          return result.value
        }
        problem = result.problem
      } catch (error) {
        problem = `it cannot be decoded (${messageOf(error)})`
      }
      this.#skipped.add(object)
      report(`${problem[0]?.toUpperCase()}${problem.slice(1)}. It is left out.`)
      return undefined
    })
  }

  #writeAll(transaction: Transaction): void {
    transaction.replaceAll({
      services: [...this.#services.known.values()],
      nodes: [...this.#nodes.known.values()],
      serviceCidrs: [...this.#cidrs.known.values()],
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
}

const objectName = ({ set, path }: localv1.Ref): string => `${localv1.Set[set] ?? set} ${path}`

const endpointPathProblem = (path: GlobalPath | undefined): string | undefined =>
  path
    ? (nameCheck('namespace', path.namespace) ?? nameCheck('service', path.name) ?? nameCheck('source', path.source))
    : 'its path does not have four parts'

/** With the service, since a source that moves from one service to another is two for a while. */
const sourceKey = ({ namespace, name, source }: GlobalPath): string => `${namespace}|${name}|${source}`

const asWritten = ({ namespace, name, service, endpoints }: Source): EndpointSource => ({
  namespace,
  name,
  service,
  endpoints: [...endpoints.values()],
})
