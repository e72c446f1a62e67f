import { zoneLabel } from '@kpng/api'
import type { Node, Pod, Service } from '../objects/kinds.js'
import { matchesAll } from '../selectors/labels.js'
import type { Change, Store } from '../storage/store.js'
import { followAll, splitKey } from './controller.js'
import type { WorkQueue } from './work-queue.js'

/** Adds the key of each Service, and again when a change may touch its endpoints. Returns the way out. */
export function followServices(store: Store, queue: WorkQueue): () => void {
  const ofPod = ({ key, before, after, deleted }: Change) => {
    const { namespace } = splitKey(key)
    for (const stored of store.list('services')) {
      if (!stored.key.startsWith(`${namespace}/`)) continue
      const selector = selectorOf(stored.object as Service)
      if (!selector) continue
      const was = before && matchesAll(selector, before.object.metadata.labels)
      const is = !deleted && matchesAll(selector, after.object.metadata.labels)
      if (was || is) queue.add(stored.key)
    }
  }
  const ofNode = ({ before, after, deleted }: Change) => {
    const zone = (object: unknown) => (object as Node | undefined)?.metadata.labels?.[zoneLabel]
    if (zone(before?.object) === zone(deleted ? undefined : after.object)) return
    for (const stored of store.list('services')) queue.add(stored.key)
  }
  const ways = [followAll(store, 'services', queue), store.subscribe('pods', ofPod), store.subscribe('nodes', ofNode)]
  return () => {
    for (const way of ways) way()
  }
}

/** The selector of a Service whose endpoints are worked out; undefined when somebody else writes them. */
export function selectorOf({ spec }: Service): Record<string, string> | undefined {
  if (spec.type === 'ExternalName' || Object.keys(spec.selector ?? {}).length === 0) return undefined
  return spec.selector
}

export function selectedPods(store: Store, namespace: string, selector: Record<string, string>): Pod[] {
  return store
    .list('pods')
    .filter(({ key, object }) => key.startsWith(`${namespace}/`) && matchesAll(selector, object.metadata.labels))
    .map(({ object }) => object as Pod)
}
