import { resourceOf } from '../kinds/kind.js'
import { serviceCidrFinalizer } from '../kinds/namespace.js'
import { clone } from '../objects/json.js'
import type { Namespace, ServiceCidr } from '../objects/kinds.js'
import { deleteObject } from '../registry/delete.js'
import type { ServiceNetwork } from '../services/network.js'
import { type Controller, type ControllerContext, kindNamed } from './controller.js'
import { WorkQueue } from './work-queue.js'

const pollMs = 50

/** Empties a namespace that is to be deleted, then lets it go. */
export class NamespaceController implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: () => void
  readonly #context: ControllerContext
  readonly #maxGracePeriodSeconds: number

  constructor(context: ControllerContext, maxGracePeriodSeconds: number) {
    this.#context = context
    this.#maxGracePeriodSeconds = maxGracePeriodSeconds
    const { store } = context.registry
    this.#queue = new WorkQueue('namespaces', (key) => this.#reconcile(key), context.log)
    this.#leave = store.subscribe('namespaces', ({ key }) => this.#queue.add(key))
    for (const { key } of store.list('namespaces')) this.#queue.add(key)
  }

  #reconcile(name: string): void {
    const { registry } = this.#context
    const namespace = registry.store.get('namespaces', name)?.object as Namespace | undefined
    if (!namespace?.metadata.deletionTimestamp) return
    let left = 0
    for (const kind of registry.kinds.all) {
      if (!kind.namespaced || kind.storedAs) continue
      for (const { key, object } of registry.store.list(resourceOf(kind))) {
        if (!key.startsWith(`${name}/`)) continue
        const maxGracePeriodSeconds = this.#maxGracePeriodSeconds
        const { gone } = deleteObject(registry, kind, name, object.metadata.name, { maxGracePeriodSeconds })
        if (!gone) left += 1
      }
    }
    // Pods take their time, and an object may have a finalizer of somebody else.
    if (left > 0) {
      this.#queue.after(pollMs, name)
      return
    }
    const emptied = clone(namespace)
    emptied.spec = {}
    registry.store.put('namespaces', name, emptied)
    if (!emptied.metadata.finalizers?.length) registry.store.remove('namespaces', name)
  }

  close(): void {
    this.#leave()
    this.#queue.close()
  }
}

/** Keeps a service range that is to be deleted as long as a Service has an address of it. */
export class ServiceCidrController implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: (() => void)[]
  readonly #context: ControllerContext
  readonly #network: ServiceNetwork

  constructor(context: ControllerContext, network: ServiceNetwork) {
    this.#context = context
    this.#network = network
    const { store } = context.registry
    const resource = 'servicecidrs.networking.k8s.io'
    this.#queue = new WorkQueue('servicecidrs', (key) => this.#reconcile(key), context.log)
    const going = () => {
      for (const { key, object } of store.list(resource)) if (object.metadata.deletionTimestamp) this.#queue.add(key)
    }
    this.#leave = [store.subscribe(resource, going), store.subscribe('services', going)]
    going()
  }

  #reconcile(name: string): void {
    const { registry } = this.#context
    const kind = kindNamed(registry, 'networking.k8s.io/v1', 'ServiceCIDR')
    const range = registry.find(kind, undefined, name) as ServiceCidr | undefined
    if (!range?.metadata.deletionTimestamp || !range.metadata.finalizers?.includes(serviceCidrFinalizer)) return
    if (this.#network.usesOnly(range.spec.cidrs ?? [])) return
    const free = clone(range)
    free.metadata.finalizers = range.metadata.finalizers.filter((finalizer) => finalizer !== serviceCidrFinalizer)
    registry.update(kind, undefined, name, free)
  }

  close(): void {
    for (const way of this.#leave) way()
    this.#queue.close()
  }
}
