import { type globalv1, isSame, type localv1 } from '@kpng/api'
import type { Changes, NodeView, ServiceChange, ServiceEndpoints, Trigger } from './backend.js'
import type { ChangeSet } from './change-set.js'

/** A node's view, kept up to date by change sets. */
export class NodeState implements NodeView {
  readonly nodeName: string
  readonly services = new Map<string, ServiceEndpoints>()
  serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR> = new Map()
  node: globalv1.Node | undefined

  constructor(nodeName: string) {
    this.nodeName = nodeName
  }

  /** Applies a change set and returns what it changed. Of a whole view, which repeats what is known, only what differs is a change. */
  apply({ reset, services, node, serviceCidrs, triggers, timeline }: ChangeSet): Changes {
    const changed = new Map<string, ServiceChange>()
    const change = (path: string, after: ServiceEndpoints | undefined) => {
      const before = this.services.get(path)
      // Only a whole view is compared: anywhere else it would cost what exists, not what changed.
      if (before === after || (reset && isSame(before, after))) return
      if (after) this.services.set(path, after)
      else this.services.delete(path)
      changed.set(path, { before, after })
    }
    for (const [path, after] of services) change(path, after)
    if (reset) for (const path of [...this.services.keys()]) if (!services.has(path)) change(path, undefined)
    const hasNewNode = this.node !== node && !isSame(this.node, node)
    const hasNewCidrs = this.serviceCidrs !== serviceCidrs && !isSame(this.serviceCidrs, serviceCidrs)
    this.node = node
    this.serviceCidrs = serviceCidrs
    return {
      full: false,
      services: changed,
      node: hasNewNode,
      serviceCidrs: hasNewCidrs,
      triggers,
      ...(timeline ? { timeline } : {}),
    }
  }
}

/** Two changes, one after the other, as one. */
export function mergeChanges(first: Changes, second: Changes): Changes {
  return {
    full: first.full || second.full,
    services: first.services.size === 0 ? second.services : mergeServices(first.services, second.services),
    node: first.node || second.node,
    serviceCidrs: first.serviceCidrs || second.serviceCidrs,
    triggers: mergeTriggers(first.triggers, second.triggers),
    ...timelineOf(first, second),
  }
}

function mergeServices(first: Changes['services'], second: Changes['services']): Changes['services'] {
  const services = new Map(first)
  for (const [path, { before, after }] of second) {
    const earlier = services.get(path)
    const change = { before: earlier ? earlier.before : before, after }
    if (isSame(change.before, change.after)) services.delete(path)
    else services.set(path, change)
  }
  return services
}

/** One per Service, the earliest: while syncs fail, a busy Service would add one more with each change. */
function mergeTriggers(first: readonly Trigger[], second: readonly Trigger[]): readonly Trigger[] {
  if (first.length === 0 || second.length === 0) return first.length === 0 ? second : first
  const earliest = new Map<string, Trigger>()
  for (const trigger of [...first, ...second]) {
    const known = earliest.get(trigger.service)
    if (!known || trigger.unixMs < known.unixMs) earliest.set(trigger.service, trigger)
  }
  return [...earliest.values()]
}

/** The first's, up to the last: it has waited longest. */
function timelineOf({ timeline: first }: Changes, { timeline: second }: Changes): Pick<Changes, 'timeline'> {
  if (first && second) return { timeline: { ...first, revision: second.revision } }
  const timeline = first ?? second
  return timeline ? { timeline } : {}
}

export const noChanges: Changes = { full: false, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

export const isNothing = (changes: Changes): boolean =>
  !changes.full && changes.services.size === 0 && !changes.node && !changes.serviceCidrs

/** The endpoints of a Service in the order of their names, which are unique in it. It never changes: a changed copy takes its place. */
export class NamedEndpoints {
  static readonly none = new NamedEndpoints([], [])
  readonly #names: readonly string[]
  /** In the order of the names. */
  readonly messages: readonly localv1.Endpoint[]

  private constructor(names: readonly string[], messages: readonly localv1.Endpoint[]) {
    this.#names = names
    this.messages = messages
  }

  /**
   * Only what changed is looked for and sorted: a Service may have ten thousand endpoints.
   * @param changed by name; undefined for endpoints that are gone
   */
  with(changed: ReadonlyMap<string, localv1.Endpoint | undefined>): NamedEndpoints {
    if (changed.size === 0) return this
    const names: string[] = []
    const messages: localv1.Endpoint[] = []
    let done = 0
    const copyUntil = (end: number) => {
      for (; done < end; done++) {
        names.push(this.#names[done] as string)
        messages.push(this.messages[done] as localv1.Endpoint)
      }
    }
    for (const name of [...changed.keys()].sort()) {
      copyUntil(this.#indexOf(name, done))
      if (this.#names[done] === name) done++
      const message = changed.get(name)
      if (!message) continue
      names.push(name)
      messages.push(message)
    }
    copyUntil(this.#names.length)
    return new NamedEndpoints(names, messages)
  }

  /** Where a name is, or would be, from an index on. */
  #indexOf(name: string, from: number): number {
    let [low, high] = [from, this.#names.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#names[middle] as string) < name) low = middle + 1
      else high = middle
    }
    return low
  }
}
