import { resourceOf } from '../kinds/kind.js'
import { deleteObject } from '../registry/delete.js'
import { type Controller, type ControllerContext, reconciler } from './controller.js'

/** Removes what an object owned once it is gone, as `--cascade=background` promises. Its keys are UIDs of owners. */
export function garbageCollector(context: ControllerContext): Controller {
  const { registry, maxGracePeriodSeconds } = context
  const { store, kinds } = registry
  /** Keys of dependents, `resource key`, by the UID of their owner. */
  const dependents = new Map<string, Set<string>>()
  const addDependent = (uid: string, dependent: string) => {
    const known = dependents.get(uid)
    if (known) known.add(dependent)
    else dependents.set(uid, new Set([dependent]))
  }

  for (const { resource, stored } of store.entries()) {
    for (const { uid } of stored.object.metadata.ownerReferences ?? []) addDependent(uid, `${resource} ${stored.key}`)
  }

  const collect = (owner: string) => {
    for (const dependent of [...(dependents.get(owner) ?? [])]) {
      const space = dependent.indexOf(' ')
      const resource = dependent.slice(0, space)
      const kind = kinds.all.find((item) => !item.storedAs && resourceOf(item) === resource)
      const object = store.get(resource, dependent.slice(space + 1))?.object
      if (!kind || !object) continue
      const { name, namespace } = object.metadata
      deleteObject(registry, kind, namespace, name, { maxGracePeriodSeconds })
    }
    dependents.delete(owner)
  }

  return reconciler('garbage collector', context, collect, (queue) => [
    store.subscribe(undefined, ({ resource, key, before, after, deleted }) => {
      const dependent = `${resource} ${key}`
      for (const { uid } of before?.object.metadata.ownerReferences ?? []) dependents.get(uid)?.delete(dependent)
      if (!deleted) for (const { uid } of after.object.metadata.ownerReferences ?? []) addDependent(uid, dependent)
      const { uid } = after.object.metadata
      if (deleted && uid && dependents.get(uid)?.size) queue.add(uid)
    }),
  ])
}
