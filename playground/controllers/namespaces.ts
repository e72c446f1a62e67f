import { resourceOf } from '../kinds/kind.js'
import { serviceCidrFinalizer } from '../kinds/namespace.js'
import { clone } from '../objects/json.js'
import type { Namespace, ServiceCidr } from '../objects/kinds.js'
import { deleteObject } from '../registry/delete.js'
import type { ServiceNetwork } from '../services/network.js'
import { type Controller, type ControllerContext, followAll, kindNamed, reconciler } from './controller.js'

const pollMs = 50

/** Empties a namespace that is to be deleted, then lets it go. */
export function namespaceController(context: ControllerContext): Controller {
  const { registry, maxGracePeriodSeconds } = context
  const { store, kinds } = registry

  /** Deletes what is in it; returns how much is still there. */
  const empty = (name: string): number => {
    const objects = kinds.all
      .filter((kind) => kind.namespaced && !kind.storedAs)
      .flatMap((kind) => store.list(resourceOf(kind)).map(({ key, object }) => ({ kind, key, object })))
      .filter(({ key }) => key.startsWith(`${name}/`))
    return objects.filter(
      ({ kind, object }) => !deleteObject(registry, kind, name, object.metadata.name, { maxGracePeriodSeconds }).gone,
    ).length
  }

  return reconciler(
    'namespaces',
    context,
    (name, queue) => {
      const namespace = store.get('namespaces', name)?.object as Namespace | undefined
      if (!namespace?.metadata.deletionTimestamp) return
      // Pods take their time, and an object may have a finalizer of somebody else.
      if (empty(name) > 0) {
        queue.after(pollMs, name)
        return
      }
      store.put('namespaces', name, { ...clone(namespace), spec: {} })
      if (!namespace.metadata.finalizers?.length) store.remove('namespaces', name)
    },
    (queue) => [followAll(store, 'namespaces', queue)],
  )
}

/** Keeps a service range that is to be deleted as long as a Service has an address of it. */
export function serviceCidrController(context: ControllerContext, network: ServiceNetwork): Controller {
  const { registry } = context
  const kind = kindNamed(registry, 'networking.k8s.io/v1', 'ServiceCIDR')
  return reconciler(
    'servicecidrs',
    context,
    (name) => {
      const range = registry.find(kind, undefined, name) as ServiceCidr | undefined
      if (!range?.metadata.deletionTimestamp || !range.metadata.finalizers?.includes(serviceCidrFinalizer)) return
      if (network.usesOnly(range.spec.cidrs ?? [])) return
      const free = clone(range)
      free.metadata.finalizers = range.metadata.finalizers.filter((finalizer) => finalizer !== serviceCidrFinalizer)
      registry.update(kind, undefined, name, free)
    },
    (queue) => {
      const addLeaving = () => {
        for (const { key, object } of registry.store.list(resourceOf(kind)))
          if (object.metadata.deletionTimestamp) queue.add(key)
      }
      addLeaving()
      return [resourceOf(kind), 'services'].map((resource) => registry.store.subscribe(resource, addLeaving))
    },
  )
}
