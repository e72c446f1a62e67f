import type { globalv1, localv1 } from '@kpng/api'
import {
  endpointsFromKubernetes,
  type KeptKeys,
  nodeFromKubernetes,
  type ProxySelection,
  type SliceEndpoints,
  serviceCidrFromKubernetes,
  serviceFromKubernetes,
} from '../objects/index.js'
import { internTable } from './intern.js'
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
 * Slices are selected by the same labels as Services. That is right for the slices that Kubernetes makes: its controller copies
 * the labels of the Service to them (service-proxy-name among them; headless it sets itself), and kube-proxy relies on it too.
 * Slices that people write for a Service without a selector must carry the label of a specialised proxy themselves. Taking
 * every slice in the cluster instead, to spare them that, would make each specialised proxy as costly to the API server as
 * the default one.
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
      read: (object, report) =>
        selection.takesSlice(object) ? endpointsFromKubernetes(object, report, intern) : undefined,
      set: (transaction, { source, triggerUnixMs }) => {
        const isOurs = triggerUnixMs !== undefined && triggerUnixMs >= startedAtUnixMs
        transaction.setEndpoints(source, isOurs ? triggerUnixMs : undefined)
      },
      delete: (transaction, namespace, name) => transaction.deleteEndpoints(namespace, name),
    },
  }
}

export function nodesKind(kept: KeptKeys): WatchedKind<globalv1.Node> {
  return {
    resource: { group: '', version: 'v1', name: 'nodes' },
    mapping: {
      kind: 'Node',
      storeKind: 'nodes',
      read: (object, report) => nodeFromKubernetes(object, kept, report),
      set: (transaction, node) => transaction.setNode(node),
      delete: (transaction, _, name) => transaction.deleteNode(name),
    },
  }
}

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
