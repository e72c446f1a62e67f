import { clone, equal } from '../objects/json.js'
import type { EndpointSlice, Node, Service } from '../objects/kinds.js'
import { microTimestamp } from '../objects/time.js'
import { type KubeObject, keyOf } from '../objects/types.js'
import { deleteObject } from '../registry/delete.js'
import { type Controller, type ControllerContext, kindNamed, splitKey } from './controller.js'
import { desiredGroups, type EndpointGroup, inheritedLabels } from './desired-endpoints.js'
import { followServices, selectedPods, selectorOf } from './service-pods.js'
import { planSlices } from './slice-plan.js'
import { WorkQueue } from './work-queue.js'

const managedBy = 'endpointslice-controller.k8s.io'
const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
const serviceNameLabel = 'kubernetes.io/service-name'
const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time'
const resource = 'endpointslices.discovery.k8s.io'

/** Keeps the EndpointSlices of every Service with a selector as its pods are. */
export class EndpointSliceController implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: (() => void)[]
  /** Keys of our slices by the key of their Service: looking through all slices for each Service would be quadratic. */
  readonly #sliceKeys = new Map<string, Set<string>>()
  readonly #context: ControllerContext

  constructor(context: ControllerContext) {
    this.#context = context
    const { store } = context.registry
    this.#queue = new WorkQueue('endpointslices', (key) => this.#reconcile(key), context.log)
    const add = (key: string) => this.#queue.add(key)
    this.#leave = [
      followServices(store, add),
      // Somebody removed or edited one of our slices: it is put right again.
      store.subscribe(resource, ({ key, before, after, deleted }) => {
        const was = before && this.#index(key, before.object as KubeObject, false)
        const is = deleted ? undefined : this.#index(key, after.object as KubeObject, true)
        for (const service of new Set([was, is])) if (service) add(service)
      }),
    ]
    for (const { key, object } of store.list(resource)) this.#index(key, object as KubeObject, true)
    for (const { key } of store.list('services')) add(key)
  }

  #reconcile(key: string): void {
    const { registry } = this.#context
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
  #index(key: string, slice: KubeObject, there: boolean): string | undefined {
    const name = slice.metadata.labels?.[serviceNameLabel]
    if (!name || slice.metadata.labels?.[managedByLabel] !== managedBy) return undefined
    const service = keyOf(slice.metadata.namespace, name)
    const keys = this.#sliceKeys.get(service) ?? new Set()
    if (there) this.#sliceKeys.set(service, keys.add(key))
    else if (keys.delete(key) && keys.size === 0) this.#sliceKeys.delete(service)
    return service
  }

  #slicesOf(serviceKey: string): EndpointSlice[] {
    const { store } = this.#context.registry
    return [...(this.#sliceKeys.get(serviceKey) ?? [])]
      .sort()
      .flatMap((key) => store.get(resource, key) ?? [])
      .map(({ object }) => object as EndpointSlice)
      .filter(({ metadata }) => !metadata.deletionTimestamp)
  }

  #keepPlaceholder(service: Service, addressType: 'IPv4' | 'IPv6', existing: readonly EndpointSlice[]): void {
    const [first, ...others] = existing.filter((slice) => slice.addressType === addressType)
    if (!first) this.#create(service, { addressType, ports: [], endpoints: [] })
    else if (first.endpoints.length > 0) this.#write(service, first, { ...first, endpoints: [], ports: [] })
    for (const slice of others) this.#remove(slice)
  }

  #labelsFor(service: Service): Record<string, string> {
    return { ...inheritedLabels(service), [serviceNameLabel]: service.metadata.name, [managedByLabel]: managedBy }
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
        labels: this.#labelsFor(service),
        annotations: { [triggerTime]: microTimestamp() },
        ownerReferences: [owner],
      },
      addressType,
      endpoints,
      ports,
    }
    this.#context.registry.create(this.#kind, namespace, slice)
  }

  /** Writes a slice only when something in it differs. */
  #write(service: Service, before: EndpointSlice, wanted: EndpointSlice): void {
    const labels = this.#labelsFor(service)
    const same = equal(before.endpoints, wanted.endpoints) && equal(before.ports, wanted.ports)
    if (same && equal(before.metadata.labels, labels)) return
    const slice = clone(wanted)
    slice.metadata.labels = labels
    if (!same) slice.metadata.annotations = { ...slice.metadata.annotations, [triggerTime]: microTimestamp() }
    this.#context.registry.update(this.#kind, slice.metadata.namespace, slice.metadata.name, slice)
  }

  #remove({ metadata }: EndpointSlice): void {
    if (!this.#context.registry.find(this.#kind, metadata.namespace, metadata.name)) return
    deleteObject(this.#context.registry, this.#kind, metadata.namespace, metadata.name)
  }

  get #kind() {
    return kindNamed(this.#context.registry, 'discovery.k8s.io/v1', 'EndpointSlice')
  }

  close(): void {
    for (const way of this.#leave) way()
    this.#queue.close()
  }
}
