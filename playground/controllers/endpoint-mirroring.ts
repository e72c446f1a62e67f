import { parseIp } from '@kpng/api'
import { clone, equal } from '../objects/json.js'
import type { EndpointSlice, EndpointSubset, Endpoints, IpFamily, Service } from '../objects/kinds.js'
import { keyOf } from '../objects/types.js'
import { deleteObject } from '../registry/delete.js'
import { type Controller, type ControllerContext, kindNamed, splitKey } from './controller.js'
import { groupKey, inheritedLabels } from './desired-endpoints.js'
import { selectorOf } from './service-pods.js'
import { WorkQueue } from './work-queue.js'

const managedBy = 'endpointslicemirroring-controller.k8s.io'
const resource = 'endpointslices.discovery.k8s.io'
const families: readonly IpFamily[] = ['IPv4', 'IPv6']

type Mirrored = Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'>

/** The slices that say what Endpoints say. A pure function. */
export function mirroredSlices(subsets: readonly EndpointSubset[]): Mirrored[] {
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
export class EndpointMirroringController implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: (() => void)[]
  /** Keys of Services that have mirrored slices. */
  readonly #mirrored = new Set<string>()
  readonly #context: ControllerContext

  constructor(context: ControllerContext) {
    this.#context = context
    const { store } = context.registry
    this.#queue = new WorkQueue('endpointslicemirroring', (key) => this.#reconcile(key), context.log)
    const add = ({ key }: { key: string }) => this.#queue.add(key)
    this.#leave = [store.subscribe('endpoints', add), store.subscribe('services', add)]
    for (const { object } of store.list(resource)) {
      const { labels = {}, namespace } = object.metadata
      const service = labels['kubernetes.io/service-name']
      if (labels['endpointslice.kubernetes.io/managed-by'] === managedBy && service)
        this.#mirrored.add(keyOf(namespace, service))
    }
    for (const key of [...this.#mirrored, ...store.list('endpoints').map((stored) => stored.key)]) this.#queue.add(key)
  }

  #reconcile(key: string): void {
    const { registry } = this.#context
    const { namespace, name } = splitKey(key)
    const service = registry.store.get('services', key)?.object as Service | undefined
    const endpoints = registry.store.get('endpoints', key)?.object as Endpoints | undefined
    const skip = endpoints?.metadata.labels?.['endpointslice.kubernetes.io/skip-mirror'] === 'true'
    const mirrors = service && endpoints && !skip && !selectorOf(service)
    const wanted = mirrors ? mirroredSlices(endpoints.subsets ?? []) : []
    // Nothing to mirror and nothing mirrored is the rule; only then is looking through the slices worth it.
    if (wanted.length === 0 && !this.#mirrored.has(key)) return
    const kind = kindNamed(registry, 'discovery.k8s.io/v1', 'EndpointSlice')
    const existing = registry.store
      .list(resource)
      .map(({ object }) => object as EndpointSlice)
      .filter(
        ({ metadata: { namespace: home, labels } }) =>
          home === namespace && labels?.['kubernetes.io/service-name'] === name,
      )
      .filter(({ metadata }) => metadata.labels?.['endpointslice.kubernetes.io/managed-by'] === managedBy)
    for (const slice of wanted) {
      const same = groupKey(slice.addressType, slice.ports ?? [])
      const index = existing.findIndex((other) => groupKey(other.addressType, other.ports ?? []) === same)
      const [found] = index < 0 ? [] : existing.splice(index, 1)
      if (!found) registry.create(kind, namespace, this.#newSlice(service as Service, slice))
      else if (!equal(found.endpoints, slice.endpoints)) {
        registry.update(kind, namespace, found.metadata.name, { ...clone(found), endpoints: slice.endpoints })
      }
    }
    for (const { metadata } of existing) deleteObject(registry, kind, namespace, metadata.name)
    if (wanted.length > 0) this.#mirrored.add(keyOf(namespace, name))
    else this.#mirrored.delete(key)
  }

  #newSlice(service: Service, slice: Mirrored): EndpointSlice {
    const { name } = service.metadata
    const labels = {
      ...inheritedLabels(service),
      'kubernetes.io/service-name': name,
      'endpointslice.kubernetes.io/managed-by': managedBy,
    }
    return {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: '', generateName: `${name}-`, labels },
      ...slice,
    }
  }

  close(): void {
    for (const way of this.#leave) way()
    this.#queue.close()
  }
}
