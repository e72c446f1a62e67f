import { isDeepStrictEqual } from 'node:util'
import type { globalv1, localv1 } from '@kpng/api'
import xxhash from 'xxhash-wasm'

// What the store holds, and when two things say the same. Everything here is immutable once it is in the store: readers share it, nobody
// copies it.

/** The conditions of an endpoint, with Kubernetes' defaults for missing ones applied. */
export interface Conditions {
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
}

/** Hints of the EndpointSlice controller: for which zones and nodes an endpoint is meant. */
export interface Hints {
  readonly zones: readonly string[]
  readonly nodes: readonly string[]
}

/** A port that an endpoint serves. An empty name stands for the only port of a service. */
export interface EndpointPort {
  readonly name: string
  readonly port: number
  /** A service's port of another protocol is not served. Undefined: the source does not say, and the name alone counts. */
  readonly protocol?: localv1.Protocol
}

/**
 * One endpoint of one source (an EndpointSlice, or one service of a state file). There may be half a million of them, so it is
 * lean, and what the endpoints of a slice have in common (ports, node and zone names, conditions) is shared, not repeated.
 */
export interface EndpointRecord {
  readonly podName: string
  readonly hostname: string
  readonly v4: readonly string[]
  readonly v6: readonly string[]
  /** Undefined: the source does not list them (state files need not), and the target ports of the service count. */
  readonly ports: readonly EndpointPort[] | undefined
  readonly node: string
  readonly zone: string
  readonly hints: Hints | undefined
  readonly conditions: Conditions
}

/** The eight possible conditions, one object each. */
const allConditions: readonly Conditions[] = Array.from({ length: 8 }, (_, bits) =>
  Object.freeze({ ready: (bits & 1) !== 0, serving: (bits & 2) !== 0, terminating: (bits & 4) !== 0 }),
)

/** Shared conditions. As in kube-proxy, missing `ready` and `serving` are true, missing `terminating` is false. */
export function conditionsOf(given: { ready?: boolean; serving?: boolean; terminating?: boolean } = {}): Conditions {
  const ready = given.ready ?? true
  const serving = given.serving ?? true
  const bits = (ready ? 1 : 0) | (serving ? 2 : 0) | (given.terminating ? 4 : 0)
  return allConditions[bits] as Conditions
}

/** Whether a client is better served at an address by an endpoint of the first conditions than by one of the second. */
export const isBetter = (a: Conditions, b: Conditions): boolean => usefulness(a) > usefulness(b)

/** A ready endpoint is the best one, then one that still serves, then one that is not terminating. */
const usefulness = ({ ready, serving, terminating }: Conditions): number =>
  (ready ? 4 : 0) + (serving ? 2 : 0) + (terminating ? 0 : 1)

/** Nothing, shared. */
export const none: readonly never[] = Object.freeze([])

/** A service and the endpoints of all its sources. A new object takes its place when anything in it changes. */
export interface ServiceEntry {
  /** `namespace/name` */
  readonly path: string
  readonly namespace: string
  readonly name: string
  /** Missing while only endpoints are known: such an entry is in nobody's view. */
  readonly service: localv1.Service | undefined
  /** The endpoints by the name of the source that they are from. */
  readonly sources: ReadonlyMap<string, readonly EndpointRecord[]>
}

/** The endpoints of one source. */
export interface EndpointSource {
  readonly namespace: string
  readonly name: string
  readonly service: string
  readonly endpoints: readonly EndpointRecord[]
}

/** The whole state of a cluster, as a source that reads everything at once has it. */
export interface ClusterState {
  readonly services: readonly localv1.Service[]
  readonly endpoints: readonly EndpointSource[]
  readonly nodes: readonly globalv1.Node[]
  readonly serviceCidrs: readonly localv1.ServiceCIDR[]
}

/** Whether two messages say the same. */
export const sameMessage = (a: unknown, b: unknown): boolean => a === b || isDeepStrictEqual(a, b)

export function sameStrings(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((value, index) => value === b[index]))
}

const sameHints = (a: Hints | undefined, b: Hints | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && sameStrings(a.zones, b.zones) && sameStrings(a.nodes, b.nodes))

const samePorts = (a: EndpointRecord['ports'], b: EndpointRecord['ports']): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.length === b.length &&
    a.every(({ name, port, protocol }, index) => {
      const other = b[index]
      return name === other?.name && port === other.port && protocol === other.protocol
    }))

/** Compared field by field: this runs for every endpoint of every slice update, most of which change nothing. */
function sameEndpoint(a: EndpointRecord, b: EndpointRecord): boolean {
  return (
    a === b ||
    (a.podName === b.podName &&
      a.hostname === b.hostname &&
      a.node === b.node &&
      a.zone === b.zone &&
      a.conditions.ready === b.conditions.ready &&
      a.conditions.serving === b.conditions.serving &&
      a.conditions.terminating === b.conditions.terminating &&
      sameStrings(a.v4, b.v4) &&
      sameStrings(a.v6, b.v6) &&
      samePorts(a.ports, b.ports) &&
      sameHints(a.hints, b.hints))
  )
}

/**
 * The records to keep for a source: an incoming record that says the same as a stored one is replaced by it, so that a
 * later comparison sees at once, by identity, what did not change. Returns `before` itself when nothing changed.
 */
export function reuseEndpoints(
  before: readonly EndpointRecord[] | undefined,
  incoming: readonly EndpointRecord[],
): readonly EndpointRecord[] {
  if (!before || before === incoming) return incoming
  let stored: ReadonlyMap<string, readonly EndpointRecord[]> | undefined
  const after = incoming.map((record, index) => {
    // Nearly all are where they were.
    const there = before[index]
    if (there && sameEndpoint(there, record)) return there
    stored ??= byAddress(before)
    return stored.get(addressOf(record))?.find((known) => sameEndpoint(known, record)) ?? record
  })
  const unchanged = after.length === before.length && after.every((record, index) => record === before[index])
  return unchanged ? before : after
}

/** One address may be there more than once, with other ports. */
function byAddress(records: readonly EndpointRecord[]): Map<string, EndpointRecord[]> {
  const found = new Map<string, EndpointRecord[]>()
  for (const record of records) {
    const known = found.get(addressOf(record))
    if (known) known.push(record)
    else found.set(addressOf(record), [record])
  }
  return found
}

const addressOf = (record: EndpointRecord): string => record.v4[0] ?? record.v6[0] ?? ''

const sameEndpoints = (a: readonly EndpointRecord[], b: readonly EndpointRecord[]): boolean =>
  a === b || (a.length === b.length && a.every((record, index) => sameEndpoint(record, b[index] as EndpointRecord)))

/** Whether two entries say the same, though they may be different objects. */
export function sameEntry(a: ServiceEntry, b: ServiceEntry): boolean {
  if (!sameMessage(a.service, b.service) || a.sources.size !== b.sources.size) return false
  return [...b.sources].every(([name, endpoints]) => {
    const before = a.sources.get(name)
    return before !== undefined && sameEndpoints(before, endpoints)
  })
}

const { h64Raw, h64ToString } = await xxhash()

/** 64 bits, as the contract's Hash fields carry them. */
export const hash64 = (bytes: Uint8Array): bigint => h64Raw(bytes)

/** 64 bits as 16 hex digits, for keys of things that have no name. */
export const hashKey = (text: string): string => h64ToString(text)
