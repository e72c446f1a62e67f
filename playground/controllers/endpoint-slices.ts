import type { Kind } from '../kinds/kind.js'
import { clone, equal } from '../objects/json.js'
import type { EndpointSlice, Node, Service } from '../objects/kinds.js'
import { microTimestamp } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import { deleteObject } from '../registry/delete.js'
import type { Registry } from '../registry/registry.js'
import { type Controller, type ControllerContext, kindNamed, reconciler, splitKey } from './controller.js'
import { desiredGroups, type EndpointGroup, serviceOf, sliceLabels } from './desired-endpoints.js'
import { followServices, selectedPods, selectorOf } from './service-pods.js'
import { planSlices } from './slice-plan.js'

const managedBy = 'endpointslice-controller.k8s.io'
const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time'
const resource = 'endpointslices.discovery.k8s.io'

/** Keeps the EndpointSlices of every Service with a selector as its pods are. */
export function endpointSliceController(context: ControllerContext): Controller {
  const { store } = context.registry
  const slices = new ServiceSlices(context.registry)
  return reconciler(
    'endpointslices',
    context,
    (key) => slices.reconcile(key),
    (queue) => [
      followServices(store, queue),
      // Somebody removed or edited one of our slices: it is put right again.
      store.subscribe(resource, ({ key, before, after, deleted }) => {
        const was = before && slices.index(key, before.object as KubeObject, false)
        const is = deleted ? undefined : slices.index(key, after.object as KubeObject, true)
        for (const service of new Set([was, is])) if (service) queue.add(service)
      }),
    ],
  )
}

class ServiceSlices {
  /** Keys of our slices by the key of their Service: looking through all slices for each Service would be quadratic. */
  readonly #sliceKeys = new Map<string, Set<string>>()
  readonly #registry: Registry
  readonly #kind: Kind

  constructor(registry: Registry) {
    this.#registry = registry
    this.#kind = kindNamed(registry, 'discovery.k8s.io/v1', 'EndpointSlice')
    for (const { key, object } of registry.store.list(resource)) this.index(key, object as KubeObject, true)
  }

  reconcile(key: string): void {
    const registry = this.#registry
    const { namespace } = splitKey(key)
    const service = registry.store.get('services', key)?.object as Service | undefined
    const existing = this.#slicesOf(key)
    const selector = service && selectorOf(service)
    if (!service || service.metadata.deletionTimestamp || !selector) {
      // Without selector the slices belong to the user; those left from when there was one stay, as in a real cluster.
      if (!service) for (const slice of existing) this.#remove(slice)
      return
    }
    const nodeOf = (node: string) => registry.store.get('nodes', node)?.object as Node | undefined
    const groups = desiredGroups(service, selectedPods(registry.store, namespace, selector), nodeOf)
    // A Service without pods has one empty slice per family: it says "nothing", where no slice would say "not known yet".
    for (const addressType of service.spec.ipFamilies ?? []) {
      const empty = !groups.some((group) => group.addressType === addressType)
      if (empty) this.#keepPlaceholder(service, addressType, existing)
    }
    const families = new Set(groups.map(({ addressType }) => addressType as string))
    const plan = planSlices(
      existing.filter(({ addressType }) => families.has(addressType)),
      groups,
    )
    for (const { slice, endpoints } of plan.update) this.#write(service, slice, { ...slice, endpoints })
    for (const group of plan.create) this.#create(service, group)
    for (const slice of plan.remove) this.#remove(slice)
    for (const slice of existing) {
      if (!service.spec.ipFamilies?.some((family) => family === slice.addressType)) this.#remove(slice)
      else if (!plan.remove.includes(slice) && !plan.update.some((update) => update.slice === slice))
        this.#write(service, slice, slice)
    }
  }

  /** Remembers or forgets one of our slices; returns the key of its Service, undefined when it is not ours. */
  index(key: string, slice: KubeObject, there: boolean): string | undefined {
    const service = serviceOf(slice, managedBy)
    if (service === undefined) return undefined
    const keys = this.#sliceKeys.get(service) ?? new Set()
    if (there) this.#sliceKeys.set(service, keys.add(key))
    else if (keys.delete(key) && keys.size === 0) this.#sliceKeys.delete(service)
    return service
  }

  #slicesOf(serviceKey: string): EndpointSlice[] {
    return [...(this.#sliceKeys.get(serviceKey) ?? [])]
      .sort()
      .flatMap((key) => this.#registry.store.get(resource, key) ?? [])
      .map(({ object }) => object as EndpointSlice)
      .filter(({ metadata }) => !metadata.deletionTimestamp)
  }

  #keepPlaceholder(service: Service, addressType: 'IPv4' | 'IPv6', existing: readonly EndpointSlice[]): void {
    const [first, ...others] = existing.filter((slice) => slice.addressType === addressType)
    if (!first) this.#create(service, { addressType, ports: [], endpoints: [] })
    else if (first.endpoints.length > 0) this.#write(service, first, { ...first, endpoints: [], ports: [] })
    for (const slice of others) this.#remove(slice)
  }

  #create(service: Service, { addressType, ports, endpoints }: EndpointGroup): void {
    const { name, namespace = '', uid = '' } = service.metadata
    const owner = { apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true }
    const slice: EndpointSlice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: '',
        generateName: `${name}-`,
        labels: sliceLabels(service, managedBy),
        annotations: { [triggerTime]: microTimestamp() },
        ownerReferences: [owner],
      },
      addressType,
      endpoints,
      ports,
    }
    this.#registry.create(this.#kind, namespace, slice)
  }

  /** Writes a slice only when something in it differs. */
  #write(service: Service, before: EndpointSlice, wanted: EndpointSlice): void {
    const labels = sliceLabels(service, managedBy)
    const same = equal(before.endpoints, wanted.endpoints) && equal(before.ports, wanted.ports)
    if (same && equal(before.metadata.labels, labels)) return
    const slice = clone(wanted)
    slice.metadata.labels = labels
    if (!same) slice.metadata.annotations = { ...slice.metadata.annotations, [triggerTime]: microTimestamp() }
    this.#registry.update(this.#kind, slice.metadata.namespace, slice.metadata.name, slice)
  }

  #remove({ metadata }: EndpointSlice): void {
    if (!this.#registry.find(this.#kind, metadata.namespace, metadata.name)) return
    deleteObject(this.#registry, this.#kind, metadata.namespace, metadata.name)
  }
}
