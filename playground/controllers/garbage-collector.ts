import { resourceOf } from '../kinds/kind.js'
import { deleteObject } from '../registry/delete.js'
import type { Change } from '../storage/store.js'
import type { Controller, ControllerContext } from './controller.js'
import { WorkQueue } from './work-queue.js'

/** Removes what an object owned once it is gone, as `--cascade=background` promises. */
export class GarbageCollector implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: () => void
  /** Keys of dependents, `resource key`, by the UID of their owner. */
  readonly #dependents = new Map<string, Set<string>>()
  readonly #context: ControllerContext
  readonly #maxGracePeriodSeconds: number

  constructor(context: ControllerContext, maxGracePeriodSeconds: number) {
    this.#context = context
    this.#maxGracePeriodSeconds = maxGracePeriodSeconds
    const { store } = context.registry
    this.#queue = new WorkQueue('garbage collector', (uid) => this.#collect(uid), context.log)
    for (const { resource, stored } of store.entries()) {
      for (const { uid } of stored.object.metadata.ownerReferences ?? [])
        this.#remember(uid, `${resource} ${stored.key}`)
    }
    this.#leave = store.subscribe(undefined, (change) => this.#follow(change))
  }

  #remember(uid: string, dependent: string): void {
    const known = this.#dependents.get(uid)
    if (known) known.add(dependent)
    else this.#dependents.set(uid, new Set([dependent]))
  }

  #follow({ resource, key, before, after, deleted }: Change): void {
    const dependent = `${resource} ${key}`
    for (const { uid } of before?.object.metadata.ownerReferences ?? []) this.#dependents.get(uid)?.delete(dependent)
    if (!deleted) for (const { uid } of after.object.metadata.ownerReferences ?? []) this.#remember(uid, dependent)
    const { uid } = after.object.metadata
    if (deleted && uid && this.#dependents.get(uid)?.size) this.#queue.add(uid)
  }

  #collect(owner: string): void {
    const { registry } = this.#context
    for (const dependent of [...(this.#dependents.get(owner) ?? [])]) {
      const space = dependent.indexOf(' ')
      const resource = dependent.slice(0, space)
      const kind = registry.kinds.all.find((item) => !item.storedAs && resourceOf(item) === resource)
      const object = registry.store.get(resource, dependent.slice(space + 1))?.object
      if (!kind || !object) continue
      const { name, namespace } = object.metadata
      deleteObject(registry, kind, namespace, name, { maxGracePeriodSeconds: this.#maxGracePeriodSeconds })
    }
    this.#dependents.delete(owner)
  }

  close(): void {
    this.#leave()
    this.#queue.close()
  }
}
