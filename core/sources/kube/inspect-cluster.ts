import { type Known, messageOf } from '@kpng/api'
import { type Fields, isFields } from '../../kubernetes/fields.js'
import { keptKeys, type Report, selectionForProxy, serviceNameLabel } from '../../kubernetes/index.js'
import { labelsOf } from '../../kubernetes/metadata.js'
import { Store } from '../../store/index.js'
import { type KubeConnection, readBody } from './client/index.js'
import { ObjectSet, whyUnread } from './inspect-service.js'
import {
  endpointSlicesKind,
  type KubeResource,
  nodesKind,
  serviceCidrsKind,
  servicesKind,
  type WatchedKind,
} from './source.js'

/** What one list of everything shows about a Service. */
export interface ListedService {
  /** `namespace/name` */
  readonly path: string
  readonly nodePorts: readonly number[]
  /** Fields and annotations that it uses, of those in `watchedFields`. */
  readonly fields: readonly string[]
}

/** What the API server holds, read once. */
export interface ListedCluster {
  /** What could be read, as a proxy stores it. */
  readonly store: Store
  /** All Services, also those that this proxy does not serve. */
  readonly services: readonly ListedService[]
  /** The same, with their pods and NetworkPolicies as far as they can be read. */
  readonly objects: ObjectSet
  /** `namespace/name` of EndpointSlices that name no Service, or one that does not exist. */
  readonly slicesWithoutService: readonly string[]
  /** What the proxy leaves out, with the reasons, by `Kind namespace/name`. */
  readonly skipped: ReadonlyMap<string, readonly string[]>
  /** The lists that could not be read, as sentences. */
  readonly unread: ReadonlyMap<KubeResource, Unread>
}

export interface Unread {
  /** The API group of the resource. */
  readonly group: string
  readonly isForbidden: boolean
  readonly problem: string
}

/** Lists what a proxy uses, once and without a watch. Never rejects: what cannot be read is in `unread`. */
export async function listCluster(connection: KubeConnection, serviceProxyName = ''): Promise<ListedCluster> {
  const reader = new Reader(connection)
  const { store } = reader
  const selection = selectionForProxy(serviceProxyName)
  const services: Fields[] = []
  const slices: { readonly path: string; readonly service: string | undefined }[] = []
  await Promise.all([
    reader.read(servicesKind(selection, keptKeys()), (object) => services.push(object)),
    reader.read(endpointSlicesKind(selection, store, Date.now()), (object) => {
      const service = labelsOf(object)[serviceNameLabel]
      const { namespace } = metadataOf(object)
      slices.push({ path: pathOf(object), service: service ? `${String(namespace)}/${String(service)}` : undefined })
    }),
    reader.read(nodesKind(keptKeys())),
    reader.read(serviceCidrsKind()),
  ])
  const [pods, networkPolicies] = await Promise.all([
    reader.readAll({ group: '', version: 'v1', name: 'pods' }, withoutWhatNobodyAsks),
    reader.readAll({ group: 'networking.k8s.io', version: 'v1', name: 'networkpolicies' }),
  ])
  const known = new Set(services.map(pathOf))
  const areAllKnown = !reader.unread.has('services')
  const strayed = slices.filter(({ service }) => areAllKnown && (service === undefined || !known.has(service)))
  return {
    store,
    services: services.map(listed),
    objects: new ObjectSet(services, pods, networkPolicies),
    slicesWithoutService: strayed.map(({ path }) => path),
    skipped: reader.skipped,
    unread: reader.unread,
  }
}

/** Most of a pod is of no use here, and there may be tens of thousands. */
function withoutWhatNobodyAsks({ metadata, spec, status }: Fields): Fields {
  const { name, namespace, labels, deletionTimestamp } = fields(metadata)
  const { containers, initContainers } = fields(spec)
  return { metadata: { name, namespace, labels, deletionTimestamp }, spec: { containers, initContainers }, status }
}

/** More pods than this are not looked at. */
const mostObjects = 50_000

/** Whose objects are listed. */
interface ListedResource {
  readonly group: string
  readonly version: string
  readonly name: string
}

/** Objects per request: what kubectl and the reflector ask for. */
const pageSize = 500
const maxPageBytes = 256 * 1024 * 1024

class Reader {
  readonly store = new Store()
  readonly skipped = new Map<string, string[]>()
  readonly unread = new Map<KubeResource, Unread>()
  readonly #connection: KubeConnection

  constructor(connection: KubeConnection) {
    this.#connection = connection
  }

  /** Reads one kind into the store. @param see called with each object, also with those that the proxy does not take */
  async read<T>(kind: WatchedKind<T>, see: (object: Fields) => void = () => {}): Promise<void> {
    const { resource, storeKind } = kind
    try {
      for await (const objects of this.#pages(resource)) {
        this.store.update((transaction) => {
          for (const object of objects) {
            see(object)
            const value = kind.parse(object, this.#reportOf(kind.kind, object), undefined)
            if (value !== undefined) kind.set(transaction, value)
          }
        })
      }
    } catch (error) {
      const isForbidden = error instanceof Refusal && error.status === 403
      if (resource.optional && error instanceof Refusal && error.status === 404) return
      this.unread.set(resource.name, { group: resource.group, isForbidden, problem: messageOf(error) })
    } finally {
      // What cannot be read counts as empty, so that the rest can be looked at.
      if (storeKind) this.store.update((transaction) => transaction.setSynced(storeKind))
    }
  }

  /** Reads objects that a proxy does not watch: its own rights do not include them. */
  async readAll(
    resource: ListedResource,
    keep: (object: Fields) => Fields = (object) => object,
  ): Promise<Known<readonly Fields[]>> {
    const all: Fields[] = []
    try {
      for await (const objects of this.#pages(resource)) {
        for (const object of objects) all.push(keep(object))
        if (all.length > mostObjects) return { unknown: `there are more than ${mostObjects} ${resource.name}` }
      }
      return { value: all }
    } catch (error) {
      if (!(error instanceof Refusal)) return { unknown: messageOf(error) }
      return error.status === 404
        ? { value: [] }
        : { unknown: whyUnread(error.status, resource.group, resource.name, 'list') }
    }
  }

  #reportOf(kind: string, object: Fields): Report {
    const name = `${kind} ${pathOf(object)}`
    return (reason) => this.skipped.set(name, [...(this.skipped.get(name) ?? []), reason])
  }

  async *#pages({ group, version, name }: ListedResource): AsyncGenerator<readonly Fields[]> {
    const path = group === '' ? `/api/${version}/${name}` : `/apis/${group}/${version}/${name}`
    let next = ''
    do {
      const query = { limit: String(pageSize), ...(next === '' ? {} : { continue: next }) }
      const { status, body } = await this.#connection.request({ path, query })
      const text = await readBody(body, maxPageBytes)
      if (status !== 200) throw new Refusal(name, status)
      const page: unknown = JSON.parse(text)
      const list = isFields(page) ? page : {}
      yield Array.isArray(list.items) ? list.items.filter(isFields) : []
      next = isFields(list.metadata) ? String(list.metadata.continue ?? '') : ''
    } while (next !== '')
  }
}

class Refusal extends Error {
  constructor(
    resource: string,
    readonly status: number,
  ) {
    super(
      status === 403
        ? `the API server does not let you list ${resource} (403)`
        : `the API server answered ${status} to the list of ${resource}`,
    )
  }
}

export function listed(object: Fields): ListedService {
  const { ports } = fields(object.spec)
  return {
    path: pathOf(object),
    nodePorts: (Array.isArray(ports) ? ports.map(fields) : []).flatMap(({ nodePort }) =>
      typeof nodePort === 'number' && nodePort > 0 ? [nodePort] : [],
    ),
    fields: watchedFields.filter((field) => isSet(object, field)),
  }
}

/** Fields of Services that are deprecated or odd. */
const watchedFields = [
  'spec.externalIPs',
  'spec.loadBalancerIP',
  'spec.trafficDistribution: PreferClose',
  'annotation service.kubernetes.io/topology-aware-hints',
  'annotation service.kubernetes.io/topology-mode',
  'annotation service.alpha.kubernetes.io/tolerate-unready-endpoints',
] as const

function isSet(object: Fields, field: string): boolean {
  const [, annotation] = /^annotation (.*)$/.exec(field) ?? []
  if (annotation !== undefined) return Object.hasOwn(fields(metadataOf(object).annotations), annotation)
  const [path = '', wanted] = field.split(': ')
  const value = fields(object.spec)[path.replace('spec.', '')]
  if (wanted !== undefined) return value === wanted
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== ''
}

const fields = (value: unknown): Fields => (isFields(value) ? value : {})
const metadataOf = (object: Fields): Fields => fields(object.metadata)

function pathOf(object: Fields): string {
  const { namespace, name } = metadataOf(object)
  return namespace === undefined ? String(name) : `${String(namespace)}/${String(name)}`
}
