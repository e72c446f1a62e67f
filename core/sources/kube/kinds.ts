import { type globalv1, type localv1, servicePath } from '@kpng/api'
import {
  endpointsFromKubernetes,
  type KeptKeys,
  nodeFromKubernetes,
  type ProxySelection,
  type SliceEndpoints,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from '../../kubernetes/index.js'
import { reuseEndpoints } from '../../store/index.js'
import { internTable } from '../intern.js'
import type { Resource } from './reflector/index.js'
import type { KindMapping } from './store-writer.js'

/** The resources that kpng watches, by the names they have in the API. */
export type KubeResource = 'services' | 'endpointslices' | 'nodes' | 'servicecidrs'

export interface WatchedKind<T> {
  readonly resource: Resource & { readonly name: KubeResource }
  readonly mapping: KindMapping<T>
}

export function servicesKind(selection: ProxySelection, kept: KeptKeys): WatchedKind<localv1.Service> {
  const { serviceLabelSelector: labelSelector, serviceFieldSelector: fieldSelector } = selection
  return {
    resource: { group: '', version: 'v1', name: 'services', labelSelector, fieldSelector },
    mapping: {
      kind: 'Service',
      storeKind: 'services',
      // Selected once more: servers before 1.31 cannot select by spec.clusterIP.
      read: (object, report) =>
        selection.takesService(object) ? serviceFromKubernetes(object, kept, report) : undefined,
      set: (transaction, service) => transaction.setService(service),
      delete: (transaction, namespace, name) => transaction.deleteService(namespace, name),
    },
  }
}

/**
 * A slice belongs to the proxy that takes its Service. Only the slices that Kubernetes makes carry the labels of their Service;
 * those that people write for a Service without a selector need not. So a specialised proxy reads all slices, which makes it
 * as costly to the API server as the default proxy; the store serves only those whose Service it has.
 *
 * @param startedAtUnixMs a change that began before is none whose delay we could be blamed for (checklist 78)
 */
export function endpointSlicesKind(selection: ProxySelection, startedAtUnixMs: number): WatchedKind<SliceEndpoints> {
  const intern = internTable()
  return {
    resource: {
      group: 'discovery.k8s.io',
      version: 'v1',
      name: 'endpointslices',
      labelSelector: selection.sliceLabelSelector,
    },
    mapping: {
      kind: 'EndpointSlice',
      storeKind: 'endpoints',
      read: (object, report) => {
        const read = selection.takesSlice(object) ? endpointsFromKubernetes(object, report, intern) : undefined
        const isOurs = (read?.triggerUnixMs ?? 0) >= startedAtUnixMs
        return read && !isOurs ? { ...read, triggerUnixMs: undefined } : read
      },
      share: (store, slice) => {
        const stored = store.entry(servicePath(slice.namespace, slice.service))?.sources.get(slice.name)
        return { ...slice, endpoints: reuseEndpoints(stored, slice.endpoints) }
      },
      // A change that is overtaken by another one has begun nevertheless.
      merge: (earlier, later) => ({ ...later, triggerUnixMs: earlier.triggerUnixMs ?? later.triggerUnixMs }),
      set: (transaction, slice) => transaction.setEndpoints(slice, slice.triggerUnixMs),
      delete: (transaction, namespace, name) => transaction.deleteEndpoints(namespace, name),
    },
  }
}

/** @param nodeName the only Node that is wanted: thousands of agents must not each be sent the heartbeats of thousands of Nodes */
export function nodesKind(kept: KeptKeys, nodeName?: string): WatchedKind<globalv1.Node> {
  const fieldSelector = nodeName === undefined ? {} : { fieldSelector: `metadata.name=${escapedForSelector(nodeName)}` }
  return {
    resource: { group: '', version: 'v1', name: 'nodes', ...fieldSelector },
    mapping: {
      kind: 'Node',
      storeKind: 'nodes',
      // Selected once more, as with Services: a field selector may be refused.
      read: (object, report) => {
        const node = nodeFromKubernetes(object, kept, report)
        return nodeName === undefined || node?.name === nodeName ? node : undefined
      },
      set: (transaction, node) => transaction.setNode(node),
      delete: (transaction, _, name) => transaction.deleteNode(name),
    },
  }
}

const escapedForSelector = (value: string): string => value.replace(/[\\,=]/g, '\\$&')

/** Servers before 1.33 (and those that switch them off) have none: only what uses them does without. */
export function serviceCidrsKind(): WatchedKind<localv1.ServiceCIDR> {
  return {
    resource: { group: 'networking.k8s.io', version: 'v1', name: 'servicecidrs', optional: true },
    mapping: {
      kind: 'ServiceCIDR',
      read: (object, report) => serviceCidrFromKubernetes(object, report),
      set: (transaction, cidr) => transaction.setServiceCidr(cidr),
      delete: (transaction, _, name) => transaction.deleteServiceCidr(name),
    },
  }
}
