import type { Log } from '@kpng/api'
import { KpngError } from '@kpng/api'
import type { Kind } from '../kinds/kind.js'
import type { Registry } from '../registry/registry.js'
import type { Store } from '../storage/store.js'
import type { EventRecorder } from './events.js'
import { WorkQueue } from './work-queue.js'

/** What every controller is given. */
export interface ControllerContext {
  registry: Registry
  events: EventRecorder
  log: Log
  /** No graceful deletion takes longer than this. */
  maxGracePeriodSeconds: number
}

export interface Controller {
  close(): void | Promise<void>
}

/** Brings objects to what they should be, one key after the other. `follow` adds keys, now and when something changes. */
export function reconciler(
  name: string,
  { log }: ControllerContext,
  reconcile: (key: string, queue: WorkQueue) => void,
  follow: (queue: WorkQueue) => (() => void)[],
): Controller {
  const queue: WorkQueue = new WorkQueue(name, (key) => reconcile(key, queue), log)
  const unsubscribe = follow(queue)
  return {
    close() {
      for (const end of unsubscribe) end()
      queue.close()
    },
  }
}

/** Adds the key of each object of a resource, and again when it changes. Returns the way out. */
export function followAll(store: Store, resource: string, queue: WorkQueue): () => void {
  for (const { key } of store.list(resource)) queue.add(key)
  return store.subscribe(resource, ({ key }) => queue.add(key))
}

export function kindNamed(registry: Registry, apiVersion: string, name: string): Kind {
  const kind = registry.kinds.byKind(apiVersion, name)
  if (!kind) throw new KpngError('invalid', `The playground has no kind ${name} in ${apiVersion}; see kinds/index.ts.`)
  return kind
}

/** `namespace/name` of a store key. */
export const splitKey = (key: string): { namespace: string; name: string } => {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
