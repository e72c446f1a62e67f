import { type ChangeSet, type ChangeSetSource, NamedEndpoints, NodeState, type NodeView } from '@kpng/client'
import type { Store } from '../../store/index.js'
import { type NodeChange, type ServiceChange, servicesOf, View } from '../../view/index.js'

/** The change sets of a node straight from the store of this process: the same as over gRPC, and nothing is turned into text. */
export function changeSetsOf(store: Store, view = new View(store)): ChangeSetSource {
  return async function* ({ nodeName }, signal): AsyncGenerator<ChangeSet> {
    const watch = view.watchNode({ nodeName })
    const told = new ToldNode()
    const close = () => watch.close(signal.reason)
    signal.addEventListener('abort', close, { once: true })
    try {
      while (!signal.aborted) yield told.changeSet(await watch.next())
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', close)
      watch.close()
    }
  }
}

/** What a node should do, as of now. The store must be synced. */
export async function nodeViewOf(store: Store, nodeName: string): Promise<NodeView> {
  const watch = new View(store).watchNode({ nodeName })
  try {
    const state = new NodeState(nodeName)
    state.apply(new ToldNode().changeSet(await watch.next()))
    return state
  } finally {
    watch.close()
  }
}

/** What a node was told: the endpoints that do not change keep their messages. */
export class ToldNode {
  #endpoints = new Map<string, NamedEndpoints>()
  #node: ChangeSet['node']
  #serviceCidrs: ChangeSet['serviceCidrs'] = new Map()

  changeSet(change: NodeChange): ChangeSet {
    const { isWhole, node, serviceCidrs, triggers, timeline } = change
    if (isWhole) this.#endpoints = new Map()
    if (node || isWhole) this.#node = node?.after
    if (serviceCidrs.size > 0 || isWhole) this.#serviceCidrs = changed(isWhole ? [] : this.#serviceCidrs, serviceCidrs)
    return {
      reset: isWhole,
      services: new Map(Array.from(servicesOf(change), (one) => [one.path, this.#serviceOf(one)])),
      node: this.#node,
      serviceCidrs: this.#serviceCidrs,
      triggers,
      ...(timeline && { timeline: { ...timeline, viewedAtMs: performance.timeOrigin + performance.now() } }),
    }
  }

  #serviceOf({ path, after, shared, ownKeys, own }: ServiceChange) {
    if (!after) {
      this.#endpoints.delete(path)
      return undefined
    }
    const changes = new Map<string, ReturnType<typeof messageOf>>()
    for (const { key } of shared.gone) if (!ownKeys.has(key)) changes.set(key, undefined)
    for (const one of shared.set) if (!ownKeys.has(one.key)) changes.set(one.key, messageOf(one))
    for (const { key } of own.gone) changes.set(key, undefined)
    for (const one of own.set) changes.set(one.key, messageOf(one))
    const endpoints = (this.#endpoints.get(path) ?? NamedEndpoints.none).with(changes)
    this.#endpoints.set(path, endpoints)
    return { service: after.service.message, endpoints: endpoints.messages }
  }
}

const messageOf = ({ message }: ServiceChange['shared']['set'][number]): typeof message | undefined => message

function changed<T>(
  known: Iterable<readonly [string, T]>,
  changes: ReadonlyMap<string, { readonly after: T | undefined }>,
): ReadonlyMap<string, T> {
  const all = new Map(known)
  for (const [name, { after }] of changes) {
    if (after === undefined) all.delete(name)
    else all.set(name, after)
  }
  return all
}
