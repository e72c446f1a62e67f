import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { globalv1, type Log, localv1, messageOf, serviceOfEndpointPath, silentLog } from '@kpng/api'
import type { ServiceEndpoints, Timeline } from '../backend.js'
import type { ChangeSet, ChangeSetSource } from '../change-set.js'
import { NamedEndpoints } from '../node-state.js'
import type { ClientOptions } from '../options.js'
import { operationsOf } from './connect.js'
import type { Operations } from './known-state.js'

const extraSets = [localv1.Set.SERVICE_CIDRS, localv1.Set.NODES]

/** Change sets of one node from a server over gRPC. */
export function changeSetsOverGrpc(options: ClientOptions): ChangeSetSource {
  return async function* ({ nodeName, timeline = false }, signal): AsyncGenerator<ChangeSet> {
    const log = options.log ?? silentLog
    const usual = { nodeName, extraSets, timeline }
    const request = (known?: localv1.Known) =>
      toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { ...usual, ...(known && { known }) }))
    const items = new NodeItems(log)
    for await (const operations of operationsOf({ ...options, log, signal, method: '/localv1.Sets/Watch', request })) {
      yield items.apply(operations)
    }
  }
}

/** A service on its way in: its endpoints may be known before it is. */
interface Slot {
  service: localv1.Service | undefined
  endpoints: NamedEndpoints
  /** What the operations do to the endpoints, by path; undefined for those that are gone. */
  readonly changed: Map<string, localv1.Endpoint | undefined>
}

/** What a server has set, by path. Puts each endpoint to its Service. */
export class NodeItems {
  readonly #log: Log
  #slots = new Map<string, Slot>()
  #node: globalv1.Node | undefined
  #serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR> = new Map()
  /** The Service of the last endpoint, with the slash after it: the endpoints of a Service come one after the other. */
  #lastPrefix = ''
  #lastSlot: Slot | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** Applies operations and says which Services they touch. */
  apply({ reset, sets, deletes, triggers, timeline }: Operations): ChangeSet {
    if (reset) {
      this.#slots = new Map()
      this.#node = undefined
      this.#serviceCidrs = new Map()
    }
    this.#lastSlot = undefined
    const touched = new Set<string>()
    for (const value of sets) this.#set(value, touched)
    for (const { set, path } of deletes) this.#delete(set, path, touched)
    return {
      reset,
      services: new Map([...touched].flatMap((path) => this.#change(path))),
      node: this.#node,
      serviceCidrs: this.#serviceCidrs,
      triggers: triggers.map(({ service, unixMs }) => ({ service, unixMs: Number(unixMs) })),
      ...(timeline && !reset ? { timeline: timelineOf(timeline) } : {}),
    }
  }

  #set({ ref, bytes }: localv1.Value, touched: Set<string>): void {
    if (!ref) return
    const { set, path } = ref
    try {
      switch (set) {
        case localv1.Set.SERVICES:
          this.#slot(path).service = fromBinary(localv1.ServiceSchema, bytes)
          touched.add(path)
          break
        case localv1.Set.ENDPOINTS:
          this.#slotOfEndpoint(path, touched)?.changed.set(path, fromBinary(localv1.EndpointSchema, bytes))
          break
        case localv1.Set.SERVICE_CIDRS:
          this.#serviceCidrs = new Map(this.#serviceCidrs).set(path, fromBinary(localv1.ServiceCIDRSchema, bytes))
          break
        case localv1.Set.NODES:
          this.#node = fromBinary(globalv1.NodeSchema, bytes)
          break
        default:
          this.#log.detail(1, 'An item of an unknown set is skipped', { set, path })
      }
    } catch (error) {
      const what = { set: localv1.Set[set], path, error: messageOf(error) }
      this.#log.error('An item that cannot be decoded is skipped', what)
    }
  }

  #delete(set: localv1.Set, path: string, touched: Set<string>): void {
    if (set === localv1.Set.NODES) this.#node = undefined
    if (set === localv1.Set.SERVICE_CIDRS) {
      this.#serviceCidrs = new Map([...this.#serviceCidrs].filter(([name]) => name !== path))
    }
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
      slot = { service: undefined, endpoints: NamedEndpoints.none, changed: new Map() }
      this.#slots.set(path, slot)
    }
    return slot
  }

  /** What of a Service is told. Nothing, if only its endpoints are known yet. */
  #change(path: string): [string, ServiceEndpoints | undefined][] {
    const slot = this.#slots.get(path) as Slot
    slot.endpoints = slot.endpoints.with(slot.changed)
    slot.changed.clear()
    if (slot.service) return [[path, { service: slot.service, endpoints: slot.endpoints.messages }]]
    if (slot.endpoints.messages.length === 0) this.#slots.delete(path)
    return [[path, undefined]]
  }
}

const timelineOf = ({ revision, receivedAtMs, committedAtMs, viewedAtMs }: localv1.Timeline): Timeline => ({
  revision: Number(revision),
  receivedAtMs: receivedAtMs || undefined,
  committedAtMs,
  viewedAtMs,
})
