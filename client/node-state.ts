import { isDeepStrictEqual } from 'node:util'
import { type globalv1, localv1, serviceOfEndpointPath } from '@kpng/api'
import type { Changes, NodeView, ServiceChange, ServiceEndpoints } from './backend.js'
import type { ChangeSet, DeleteItem, SetItem, Trigger } from './change-set.js'

/** Endpoints in the order of their paths. */
interface Endpoints {
  readonly paths: readonly string[]
  readonly messages: readonly localv1.Endpoint[]
}

/** A service on its way in: its endpoints may be known before it is. */
interface Slot {
  service: localv1.Service | undefined
  endpoints: Endpoints
  /** What a change set does to the endpoints, by path; undefined for those that are gone. */
  readonly changed: Map<string, localv1.Endpoint | undefined>
}

/** Turns change sets into a node's view, and says what each of them changed. */
export class NodeState implements NodeView {
  readonly nodeName: string
  readonly services = new Map<string, ServiceEndpoints>()
  readonly serviceCidrs = new Map<string, localv1.ServiceCIDR>()
  node: globalv1.Node | undefined
  #slots = new Map<string, Slot>()
  /** The Service of the last endpoint, with the slash after it: the endpoints of a Service come one after the other. */
  #lastPrefix = ''
  #lastSlot: Slot | undefined

  constructor(nodeName: string) {
    this.nodeName = nodeName
  }

  /** Applies a change set. What is the same as before, as most is after a reconnect, is not a change. */
  apply(changeSet: ChangeSet): Changes {
    const touched = new Set<string>()
    this.#lastSlot = undefined
    const before = { node: this.node, serviceCidrs: new Map(this.serviceCidrs) }
    if (changeSet.reset) {
      for (const path of this.#slots.keys()) touched.add(path)
      this.#slots = new Map()
      this.serviceCidrs.clear()
      this.node = undefined
    }
    for (const item of changeSet.sets) this.#set(item, touched)
    for (const item of changeSet.deletes) this.#delete(item, touched)
    const services = new Map<string, ServiceChange>()
    for (const path of touched) this.#changeService(path, services, changeSet.reset)
    return {
      full: false,
      services,
      node: !isDeepStrictEqual(before.node, this.node),
      serviceCidrs: !isDeepStrictEqual(before.serviceCidrs, this.serviceCidrs),
      triggers: changeSet.triggers,
      ...(changeSet.timeline ? { timeline: changeSet.timeline } : {}),
    }
  }

  #set(item: SetItem, touched: Set<string>): void {
    switch (item.set) {
      case localv1.Set.SERVICES:
        this.#slot(item.path).service = item.message
        touched.add(item.path)
        break
      case localv1.Set.ENDPOINTS:
        this.#slotOfEndpoint(item.path, touched)?.changed.set(item.path, item.message)
        break
      case localv1.Set.SERVICE_CIDRS:
        this.serviceCidrs.set(item.path, item.message)
        break
      case localv1.Set.NODES:
        this.node = item.message
    }
  }

  #delete({ set, path }: DeleteItem, touched: Set<string>): void {
    if (set === localv1.Set.SERVICE_CIDRS) this.serviceCidrs.delete(path)
    else if (set === localv1.Set.NODES) this.node = undefined
    const service =
      set === localv1.Set.SERVICES ? path : set === localv1.Set.ENDPOINTS ? serviceOfEndpointPath(path) : undefined
    const slot = service === undefined ? undefined : this.#slots.get(service)
    if (service === undefined || !slot) return
    if (set === localv1.Set.SERVICES) slot.service = undefined
    else slot.changed.set(path, undefined)
    touched.add(service)
  }

  #slotOfEndpoint(path: string, touched: Set<string>): Slot | undefined {
    if (this.#lastSlot && path.startsWith(this.#lastPrefix)) return this.#lastSlot
    const service = serviceOfEndpointPath(path)
    if (service === undefined) return undefined
    touched.add(service)
    this.#lastPrefix = `${service}/`
    this.#lastSlot = this.#slot(service)
    return this.#lastSlot
  }

  #slot(path: string): Slot {
    let slot = this.#slots.get(path)
    if (!slot) {
      slot = { service: undefined, endpoints: noEndpoints, changed: new Map() }
      this.#slots.set(path, slot)
    }
    return slot
  }

  #changeService(path: string, changes: Map<string, ServiceChange>, afterReset: boolean): void {
    const before = this.services.get(path)
    const slot = this.#slots.get(path)
    if (slot && slot.changed.size > 0) {
      slot.endpoints = withChanges(slot.endpoints, slot.changed)
      slot.changed.clear()
    }
    if (slot?.service === undefined && slot?.endpoints.paths.length === 0) this.#slots.delete(path)
    const after = slot?.service && { service: slot.service, endpoints: slot.endpoints.messages }
    // Only a whole state repeats what is known; looking for that in every step would cost what exists, not what changed.
    if (afterReset ? isDeepStrictEqual(before, after) : before === undefined && after === undefined) return
    if (after) this.services.set(path, after)
    else this.services.delete(path)
    changes.set(path, { before, after })
  }
}

const noEndpoints: Endpoints = { paths: [], messages: [] }

/** New lists, since the old ones were given out. Only what changed is looked for and sorted: a service may have ten thousand endpoints. */
function withChanges(known: Endpoints, changed: ReadonlyMap<string, localv1.Endpoint | undefined>): Endpoints {
  if (known.paths.length === 0) {
    const paths = [...changed.keys()].filter((path) => changed.get(path)).sort()
    return { paths, messages: paths.map((path) => changed.get(path) as localv1.Endpoint) }
  }
  const paths: string[] = []
  const messages: localv1.Endpoint[] = []
  let done = 0
  const copyUntil = (end: number) => {
    for (; done < end; done++) {
      paths.push(known.paths[done] as string)
      messages.push(known.messages[done] as localv1.Endpoint)
    }
  }
  for (const [path, message] of [...changed].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const place = placeOf(path, known.paths, done)
    copyUntil(place)
    if (known.paths[place] === path) done++
    if (!message) continue
    paths.push(path)
    messages.push(message)
  }
  copyUntil(known.paths.length)
  return { paths, messages }
}

/** Where a path is, or would be, in a sorted list, from a place on. */
function placeOf(path: string, paths: readonly string[], from: number): number {
  let [low, high] = [from, paths.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((paths[middle] as string) < path) low = middle + 1
    else high = middle
  }
  return low
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
    if (isDeepStrictEqual(change.before, change.after)) services.delete(path)
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
