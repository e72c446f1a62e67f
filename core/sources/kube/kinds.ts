import { type globalv1, type localv1, servicePath } from '@kpng/api'
import {
  endpointsFromKubernetes,
  internTable,
  type KeptKeys,
  nodeFromKubernetes,
  type ProxySelection,
  type Report,
  type SliceEndpoints,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from '../../kubernetes/index.js'
import { type Kind, reuseEndpoints, type Store, type Transaction } from '../../store/index.js'
import type { Resource } from './reflector/index.js'

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
