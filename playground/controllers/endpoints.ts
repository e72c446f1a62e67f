import { parseIp } from '@kpng/api'
import { clone, equal } from '../objects/json.js'
import type { EndpointAddress, EndpointSubset, Endpoints, Pod, Service } from '../objects/kinds.js'
import { microTimestamp } from '../objects/time.js'
import { deleteObject } from '../registry/delete.js'
import type { Registry } from '../registry/registry.js'
import { type Controller, type ControllerContext, kindNamed, reconciler, splitKey } from './controller.js'
import { hasEndpoint, inheritedLabels, isReady, portsOf } from './desired-endpoints.js'
import { followServices, selectedPods, selectorOf } from './service-pods.js'

const managedBy = { 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' }
const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time'

function addressOf({ metadata, spec }: Pod, ip: string): EndpointAddress {
  const { name, namespace, uid } = metadata
  return { ip, ...(spec.nodeName ? { nodeName: spec.nodeName } : {}), targetRef: { kind: 'Pod', namespace, name, uid } }
}

/** The addresses of a Service's first IP family, grouped by ports. A pure function. */
function subsetsOf(service: Service, pods: readonly Pod[]): EndpointSubset[] {
  const family = service.spec.ipFamilies?.[0]
  const groups = new Map<
    string,
    { ports: EndpointSubset['ports']; ready: EndpointAddress[]; notReady: EndpointAddress[] }
  >()
  for (const pod of pods) {
    const ip = pod.status?.podIPs?.find((address) => parseIp(address.ip)?.family === family)?.ip
    if (!ip || !hasEndpoint(pod) || pod.metadata.deletionTimestamp) continue
    const ports = portsOf(service, pod)
    const key = JSON.stringify(ports)
    const group = groups.get(key) ?? { ports, ready: [], notReady: [] }
    const ready = service.spec.publishNotReadyAddresses === true || isReady(pod)
    ;(ready ? group.ready : group.notReady).push(addressOf(pod, ip))
    groups.set(key, group)
  }
  return [...groups.values()].map(({ ports, ready, notReady }) => ({
    ...(ready.length > 0 ? { addresses: ready } : {}),
    ...(notReady.length > 0 ? { notReadyAddresses: notReady } : {}),
    ...(ports?.length ? { ports } : {}),
  }))
}

/** Keeps the Endpoints objects, the older form of EndpointSlices that some tools still read. */
export const endpointsController = (context: ControllerContext): Controller =>
  reconciler(
    'endpoints',
    context,
    (key) => reconcile(context.registry, key),
    (queue) => [followServices(context.registry.store, queue)],
  )

function reconcile(registry: Registry, key: string): void {
  const { namespace, name } = splitKey(key)
  const kind = kindNamed(registry, 'v1', 'Endpoints')
  const service = registry.store.get('services', key)?.object as Service | undefined
  const existing = registry.find(kind, namespace, name) as Endpoints | undefined
  const selector = service && selectorOf(service)
  if (!service) {
    if (existing) deleteObject(registry, kind, namespace, name)
    return
  }
  if (!selector || service.metadata.deletionTimestamp) return
  const subsets = subsetsOf(service, selectedPods(registry.store, namespace, selector))
  const labels = { ...inheritedLabels(service), ...managedBy }
  if (!existing) {
    const metadata = { name, labels, annotations: { [triggerTime]: microTimestamp() } }
    registry.create(kind, namespace, { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets })
    return
  }
  if (equal(existing.subsets ?? [], subsets) && equal(existing.metadata.labels, labels)) return
  const changed = clone(existing)
  changed.subsets = subsets
  changed.metadata.labels = labels
  changed.metadata.annotations = { ...changed.metadata.annotations, [triggerTime]: microTimestamp() }
  registry.update(kind, namespace, name, changed)
}
