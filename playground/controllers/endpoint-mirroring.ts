import { families, parseIp } from '@kpng/api'
import { apiVersionOf } from '../kinds/kind.js'
import { clone, equal } from '../objects/json.js'
import type { EndpointSlice, EndpointSubset, Endpoints, Service } from '../objects/kinds.js'
import { deleteObject } from '../registry/delete.js'
import { type Controller, type ControllerContext, followAll, kindNamed, reconciler, splitKey } from './controller.js'
import { groupKey, serviceOf, sliceLabels } from './desired-endpoints.js'
import { selectorOf } from './service-pods.js'

const managedBy = 'endpointslicemirroring-controller.k8s.io'
const resource = 'endpointslices.discovery.k8s.io'

type Mirrored = Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'>

/** The slices that say what Endpoints say. */
function mirroredSlices(subsets: readonly EndpointSubset[]): Mirrored[] {
  return subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }) =>
    families.flatMap((addressType) => {
      const all = [
        ...addresses.map((address) => ({ address, ready: true })),
        ...notReadyAddresses.map((address) => ({ address, ready: false })),
      ]
      const endpoints = all
        .filter(({ address }) => parseIp(address.ip)?.family === addressType)
        .map(({ address: { ip, nodeName, targetRef, hostname }, ready }) => ({
          addresses: [ip],
          conditions: { ready },
          ...(hostname ? { hostname } : {}),
          ...(nodeName ? { nodeName } : {}),
          ...(targetRef ? { targetRef } : {}),
        }))
      const named = ports.map((port) => ({ name: '', ...port }))
      return endpoints.length === 0 ? [] : [{ addressType, endpoints, ports: named }]
    }),
  )
}

/** Somebody writes Endpoints by hand for a Service without selector: proxies read slices, so they get slices. */
export function endpointMirroringController(context: ControllerContext): Controller {
  const { registry } = context
  const { store } = registry
  const kind = kindNamed(registry, 'discovery.k8s.io/v1', 'EndpointSlice')
  const slicesOf = (key: string) =>
    store
      .list(resource)
      .map(({ object }) => object as EndpointSlice)
      .filter((slice) => serviceOf(slice, managedBy) === key)
  /** Keys of Services that have mirrored slices. */
  const mirrored = new Set(store.list(resource).flatMap(({ object }) => serviceOf(object, managedBy) ?? []))

  const reconcile = (key: string) => {
    const { namespace, name } = splitKey(key)
    const service = store.get('services', key)?.object as Service | undefined
    const endpoints = store.get('endpoints', key)?.object as Endpoints | undefined
    const skip = endpoints?.metadata.labels?.['endpointslice.kubernetes.io/skip-mirror'] === 'true'
    const mirrors = service && endpoints && !skip && !selectorOf(service)
    const wanted = mirrors ? mirroredSlices(endpoints.subsets ?? []) : []
    // Nothing to mirror and nothing mirrored is the rule; only then is looking through the slices worth it.
    if (wanted.length === 0 && !mirrored.has(key)) return
    const existing = slicesOf(key)
    for (const slice of wanted) {
      const same = groupKey(slice.addressType, slice.ports ?? [])
      const index = existing.findIndex((other) => groupKey(other.addressType, other.ports ?? []) === same)
      const [found] = index < 0 ? [] : existing.splice(index, 1)
      if (!found) {
        const metadata = { name: '', generateName: `${name}-`, labels: sliceLabels(service as Service, managedBy) }
        registry.create(kind, namespace, { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...slice })
      } else if (!equal(found.endpoints, slice.endpoints)) {
        registry.update(kind, namespace, found.metadata.name, { ...clone(found), endpoints: slice.endpoints })
      }
    }
    for (const { metadata } of existing) deleteObject(registry, kind, namespace, metadata.name)
    if (wanted.length > 0) mirrored.add(key)
    else mirrored.delete(key)
  }

  return reconciler('endpointslicemirroring', context, reconcile, (queue) => {
    for (const key of mirrored) queue.add(key)
    return [followAll(store, 'endpoints', queue), store.subscribe('services', ({ key }) => queue.add(key))]
  })
}
