import type { globalv1, localv1 } from '@kpng/api'

// What the store holds. Everything here is immutable once it is in the store: readers share it, nobody copies it.

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
