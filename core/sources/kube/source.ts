import { setImmediate } from 'node:timers/promises'
import { type globalv1, KpngError, type Log, type localv1, messageOf, servicePath } from '@kpng/api'
import type { SourceStatus } from '@kpng/client'
import {
  endpointsFromKubernetes,
  internTable,
  type KeptKeys,
  keptKeys,
  nodeFromKubernetes,
  type ProxySelection,
  type Report,
  type SliceEndpoints,
  selectionForProxy,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from '../../kubernetes/index.js'
import { type Kind, reuseEndpoints, type Store, type Transaction } from '../../store/index.js'
import { Skips } from '../skips.js'
import type { KubeConnection } from './client/index.js'
import {
  batches,
  type EventType,
  type KubeObject,
  namespaceOf,
  type ObjectEvent,
  type ReflectorTiming,
  type Resource,
} from './reflector/index.js'

export interface WatchKubeOptions {
  readonly store: Store
  readonly log: Log
  /** The connection to the API server, from `loadConnection`. The caller closes it. */
  readonly connection: KubeConnection
  /** Ends the source. */
  readonly signal: AbortSignal
  /** Where unusable objects are reported. Default: to the log. */
  readonly skips?: Skips
  /** Empty (the default): the cluster's default proxy. Otherwise only Services with this service-proxy-name (checklist 2). */
  readonly serviceProxyName?: string
  /** Watch only this Node, for a store that serves only this node (checklist 7). Default: all Nodes. */
  readonly nodeName?: string
  /** Globs of the label and annotation keys that are passed on. Default: none. */
  readonly serviceLabels?: readonly string[]
  readonly serviceAnnotations?: readonly string[]
  readonly nodeLabels?: readonly string[]
  readonly nodeAnnotations?: readonly string[]
  /** Called for each object that the API server sends (an object in a list is ADDED), and for each deletion. */
  readonly onEvent?: (resource: KubeResource, type: EventType) => void
  /** Kept up to date with how each watch is, by the name of the resource. Default: nobody is told. */
  readonly status?: SourceStatus
  readonly timing?: Partial<ReflectorTiming>
  /** Objects per page, if the server has no streaming lists. Default 500. */
  readonly pageSize?: number
}

/**
 * Keeps the store equal to what the API server has, until the signal is aborted. The store is synced when Services,
 * EndpointSlices and Nodes have each been read completely. Failures are logged and retried without end.
 */
export async function watchKube(options: WatchKubeOptions): Promise<void> {
  const selection = selectionForProxy(checkedProxyName(options.serviceProxyName))
  const { server, described } = options.connection
  options.log.info('Watching Kubernetes', { server, credentials: described })
  const skips = options.skips ?? new Skips(options.log)
  const follow = <T>(kind: WatchedKind<T>) => followKind(kind, skips, options)
  await Promise.all([
    follow(servicesKind(selection, keptKeys(options.serviceLabels, options.serviceAnnotations))),
    follow(endpointSlicesKind(selection, options.store, Date.now())),
    follow(nodesKind(keptKeys(options.nodeLabels, options.nodeAnnotations), options.nodeName)),
    ...(selection.takesServiceCidrs ? [follow(serviceCidrsKind())] : []),
  ])
}

/** So many objects of the first list are written in one update. */
const objectsPerUpdate = 500

/** Parsing yields to the event loop after this time. */
const longestTurnMs = 8

/** Writes one kind of object to the store: batches of events from the API server become updates of the store. */
async function followKind<T>(kind: WatchedKind<T>, skips: Skips, options: WatchKubeOptions): Promise<void> {
  const { store, connection, log, signal, onEvent, status, timing, pageSize } = options
  const { resource, storeKind } = kind
  const writes = new PendingWrites(kind, skips)
  let hasListed = false
  for await (const { events, state } of batches({
    connection,
    resource,
    log,
    signal,
    onEvent: (type) => onEvent?.(resource.name, type),
    ...(status && { status: status.watch(resource.name) }),
    ...(timing && { timing }),
    ...(pageSize !== undefined && { pageSize }),
  })) {
    let turnBeganAt = performance.now()
    for (const event of events) {
      writes.add(event)
      if (performance.now() - turnBeganAt < longestTurnMs) continue
      await setImmediate()
      turnBeganAt = performance.now()
    }
    // Nothing is served before the first list is complete, so it is written in portions. A later list is one update: the states
    // in the middle of it never existed.
    if (state === 'listing' && (hasListed || writes.size < objectsPerUpdate)) continue
    const isFirstList = state === 'listed' && !hasListed
    if (writes.size === 0 && !isFirstList) continue
    if (isFirstList) hasListed = true
    store.update((transaction) => {
      writes.writeTo(transaction)
      if (isFirstList && storeKind) transaction.setSynced(storeKind)
    }, writes.receivedAtMs)
  }
}

function checkedProxyName(name = ''): string {
  if (name === '' || /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name)) return name
  throw new KpngError(
    'usage',
    `The service proxy name ${JSON.stringify(name)} cannot be the value of a label. Use up to 63 letters, digits, "-", "_" and ".".`,
  )
}

/** The resources that kpng watches, by the names they have in the API. */
export type KubeResource = 'services' | 'endpointslices' | 'nodes' | 'servicecidrs'

/** A kind of object that is watched, and how its objects become entries of the store. */
export interface WatchedKind<T> {
  readonly resource: Resource & { readonly name: KubeResource }
  /** As in manifests, for instance `EndpointSlice`. */
  readonly kind: string
  readonly isNamespaced: boolean
  /** The store's name for it, if the store waits for it. */
  readonly storeKind?: Kind
  /**
   * What kpng uses of an object. Undefined: nothing.
   * @param waiting what was read of an earlier version of the object that is not written yet
   */
  parse(object: unknown, report: Report, waiting: T | undefined): T | undefined
  set(transaction: Transaction, value: T): void
  delete(transaction: Transaction, namespace: string, name: string): void
}

export function servicesKind(selection: ProxySelection, kept: KeptKeys): WatchedKind<localv1.Service> {
  const { serviceLabelSelector: labelSelector, serviceFieldSelector: fieldSelector } = selection
  return {
    resource: { group: '', version: 'v1', name: 'services', labelSelector, fieldSelector },
    kind: 'Service',
    isNamespaced: true,
    storeKind: 'services',
    // Selected here too, because servers before 1.31 cannot select by spec.clusterIP.
    parse: (object, report) =>
      selection.takesService(object) ? serviceFromKubernetes(object, kept, report) : undefined,
    set: (transaction, service) => transaction.setService(service),
    delete: (transaction, namespace, name) => transaction.deleteService(namespace, name),
  }
}

/**
 * A slice belongs to the proxy that takes its Service. Only the slices that Kubernetes makes carry the labels of their Service;
 * those that people write for a Service without a selector need not. So a specialised proxy reads all slices, which makes it
 * as costly to the API server as the default proxy. Slices whose Service the store does not have are served to nobody.
 *
 * @param store holds the endpoints that equal ones are replaced by: while a list is being read, many slices wait, and so they
 *   take little memory and little time to write
 * @param startedAtUnixMs kpng is not responsible for the delay of a change that began before (checklist 78)
 */
export function endpointSlicesKind(
  selection: ProxySelection,
  store: Store,
  startedAtUnixMs: number,
): WatchedKind<SliceEndpoints> {
  const intern = internTable()
  return {
    resource: {
      group: 'discovery.k8s.io',
      version: 'v1',
      name: 'endpointslices',
      labelSelector: selection.sliceLabelSelector,
    },
    kind: 'EndpointSlice',
    isNamespaced: true,
    storeKind: 'endpoints',
    parse: (object, report, waiting) => {
      const slice = selection.takesSlice(object) ? endpointsFromKubernetes(object, report, intern) : undefined
      if (!slice) return undefined
      const { triggerUnixMs = 0 } = slice
      const stored = store.entry(servicePath(slice.namespace, slice.service))?.sources.get(slice.name)
      return {
        ...slice,
        endpoints: reuseEndpoints(stored, slice.endpoints),
        // The delay is that of the first change that waits.
        triggerUnixMs: waiting?.triggerUnixMs ?? (triggerUnixMs >= startedAtUnixMs ? triggerUnixMs : undefined),
      }
    },
    set: (transaction, slice) => transaction.setEndpoints(slice, slice.triggerUnixMs),
    delete: (transaction, namespace, name) => transaction.deleteEndpoints(namespace, name),
  }
}

/** @param nodeName the only Node to watch: the heartbeats of thousands of Nodes must not go to each of thousands of agents */
export function nodesKind(kept: KeptKeys, nodeName?: string): WatchedKind<globalv1.Node> {
  const fieldSelector = nodeName === undefined ? {} : { fieldSelector: `metadata.name=${escapedForSelector(nodeName)}` }
  return {
    resource: { group: '', version: 'v1', name: 'nodes', ...fieldSelector },
    kind: 'Node',
    isNamespaced: false,
    storeKind: 'nodes',
    // Selected here too, as Services are: a server may refuse the field selector.
    parse: (object, report) => {
      const node = nodeFromKubernetes(object, kept, report)
      return nodeName === undefined || node?.name === nodeName ? node : undefined
    },
    set: (transaction, node) => transaction.setNode(node),
    delete: (transaction, _, name) => transaction.deleteNode(name),
  }
}

const escapedForSelector = (value: string): string => value.replace(/[\\,=]/g, '\\$&')

/** Servers before 1.33, and those that switch it off, do not have this resource. kpng then works without it. */
export function serviceCidrsKind(): WatchedKind<localv1.ServiceCIDR> {
  return {
    resource: { group: 'networking.k8s.io', version: 'v1', name: 'servicecidrs', optional: true },
    kind: 'ServiceCIDR',
    isNamespaced: false,
    parse: (object, report) => serviceCidrFromKubernetes(object, report),
    set: (transaction, cidr) => transaction.setServiceCidr(cidr),
    delete: (transaction, _, name) => transaction.deleteServiceCidr(name),
  }
}

/** An object as the store should have it. Without a value the store should not have it. */
interface Write<T> {
  readonly namespace: string
  readonly name: string
  readonly value: T | undefined
}

/**
 * What is to be written to the store next, for one kind. Each object is reduced to what kpng uses when it arrives. Writes wait as
 * data, not as functions: those would keep the whole parsed objects alive. Only one write waits per object, because a list may
 * break off again and again while its objects change.
 */
export class PendingWrites<T> {
  readonly #kind: WatchedKind<T>
  readonly #skips: Skips
  readonly #writes = new Map<string, Write<T>>()
  /** When the first of the waiting writes arrived (Unix time). */
  #receivedAtMs: number | undefined

  constructor(kind: WatchedKind<T>, skips: Skips) {
    this.#kind = kind
    this.#skips = skips
  }

  get size(): number {
    return this.#writes.size
  }

  get receivedAtMs(): number | undefined {
    return this.#receivedAtMs
  }

  add(event: ObjectEvent): void {
    const { kind } = this.#kind
    if (event.type === 'nameless') {
      this.#skips.report(`${kind} without a name`, 'metadata.name is missing or empty. It is left out.')
      return
    }
    const { namespace, name } =
      event.type === 'delete' ? event : { namespace: namespaceOf(event.object), name: event.object.metadata.name }
    const described = namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
    if (event.type === 'delete') this.#skips.forget(described)
    if (this.#kind.isNamespaced !== (namespace !== '')) {
      // It must not reach the store, where it would take the place of the object that really has this name.
      const problem = this.#kind.isNamespaced ? 'is missing' : `is "${namespace}", and a ${kind} has none`
      if (event.type === 'set') this.#skips.report(described, `metadata.namespace ${problem}. It is left out.`)
      return
    }
    this.#receivedAtMs ??= performance.timeOrigin + performance.now()
    const key = `${namespace}/${name}`
    const value = event.type === 'set' ? this.#parse(event.object, described, this.#writes.get(key)?.value) : undefined
    this.#writes.set(key, { namespace, name, value })
  }

  /** Writes everything that waits. */
  writeTo(transaction: Transaction): void {
    for (const { namespace, name, value } of this.#writes.values()) {
      if (value === undefined) this.#kind.delete(transaction, namespace, name)
      else this.#kind.set(transaction, value)
    }
    this.#writes.clear()
    this.#receivedAtMs = undefined
  }

  #parse(object: KubeObject, described: string, waiting: T | undefined): T | undefined {
    return this.#skips.reading(described, (report) => {
      try {
        return this.#kind.parse(object, report, waiting)
      } catch (error) {
        // Parsers do not throw. If one does nevertheless, that must cost one object and not the whole source.
        report(`It cannot be understood: ${messageOf(error)}. It is left out.`)
        return undefined
      }
    })
  }
}
