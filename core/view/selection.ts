import { isDeepStrictEqual } from 'node:util'
import { type EndpointReason, localv1 } from '@kpng/api'
import { type EndpointRecord, none } from '../store/index.js'
import { type Candidate, Candidates, type PortFlags } from './candidates.js'
import { finish } from './turns.js'

// Which endpoints one node should use for one service, and why each other one is left out. Pure: no store, no clock.
// The rules are kube-proxy's, per address family and per service port.

/** What selection needs to know of the node. A node nobody knows has an empty zone. */
export interface NodeTopology {
  readonly name: string
  readonly zone: string
}

/** Bits: for which traffic an endpoint may be used. See EndpointScopes in the contract. */
export const Scope = { internal: 1, external: 2, cluster: 4 } as const

export interface SelectedEndpoint {
  readonly endpoint: EndpointRecord
  readonly local: boolean
  /** Union of the scopes over all ports. None: it drains, and gets no new clients. */
  readonly scopes: number
  /** The scopes port by port, in the order of the service's ports; only where they differ. */
  readonly portScopes: readonly number[] | undefined
}

export interface LeftOutEndpoint {
  readonly endpoint: EndpointRecord
  readonly reason: EndpointReason
}

/** Whether any endpoint in the cluster serves a port, per family. */
export interface Availability {
  readonly v4: boolean
  readonly v6: boolean
}

export interface Selection {
  readonly used: readonly SelectedEndpoint[]
  readonly leftOut: readonly LeftOutEndpoint[]
  /** In the order of the service's ports. */
  readonly availability: readonly Availability[]
}

/** Which hints a node follows. */
export type Hint = 'node' | 'zone' | 'none'

/** Ports of one family that are served by the same endpoints and so are decided together. Nearly always that is all of them. */
interface Decision {
  readonly family: 'v4' | 'v6'
  readonly ports: readonly number[]
  readonly hasReady: boolean
  /** Whether an endpoint is ready, or can stand in. */
  readonly isAvailable: boolean
  /**
   * The nodes (the zones) that ready endpoints are meant for. Undefined when a ready endpoint has no such hint: the hints are being
   * rolled out or are stale, and all endpoints are used.
   */
  readonly hintedNodes: ReadonlySet<string> | undefined
  readonly hintedZones: ReadonlySet<string> | undefined
  /** The nodes that have a ready endpoint; only where a policy is Local. */
  readonly readyNodes: ReadonlySet<string> | undefined
}

interface Policy {
  readonly internalLocal: boolean
  readonly externalLocal: boolean
  /** Has a node port, an external or a load-balancer IP: traffic from outside can arrive at all. */
  readonly external: boolean
  /** Has a UDP port: nodes must know of endpoints that drain. */
  readonly udp: boolean
}

/**
 * The endpoints of one service, prepared so that the question of one node costs what that node runs: everything that does not depend
 * on the node is worked out once.
 */
export class EndpointSelector {
  readonly candidates: Candidates
  readonly #service: localv1.Service
  /** In the order of the service's ports. */
  readonly availability: readonly Availability[]
  readonly #policy: Policy
  readonly #decisions: readonly Decision[]
  /** Whether nodes may use different endpoints because of hints. */
  readonly hasHints: boolean

  constructor(service: localv1.Service, candidates: Candidates) {
    this.#service = service
    this.#policy = policyOf(service)
    this.candidates = candidates
    const portCount = Math.max(1, service.ports.length)
    const availability = Array.from({ length: portCount }, () => ({ v4: false, v6: false }))
    const decisions: Decision[] = []
    for (const family of ['v4', 'v6'] as const) {
      for (const ports of portsDecidedTogether(this.candidates.list, family, portCount)) {
        const decision = decisionOf(this.candidates.list, family, ports, this.#policy)
        decisions.push(decision)
        for (const port of ports) (availability[port] as { v4: boolean; v6: boolean })[family] = decision.isAvailable
      }
    }
    this.availability = availability
    this.#decisions = decisions
    this.hasHints = decisions.some(({ hintedNodes, hintedZones }) => hintedNodes || hintedZones)
  }

  /**
   * Whether nodes whose own endpoints are the same in both, and the hints for them, follow the same hints and use each endpoint that both
   * have for the same.
   */
  selectsLike(other: EndpointSelector): boolean {
    const isSame = (decision: Decision, like: Decision | undefined) =>
      decision.family === like?.family &&
      decision.hasReady === like.hasReady &&
      decision.ports.join() === like.ports.join() &&
      (decision.hintedNodes === undefined) === (like.hintedNodes === undefined) &&
      isDeepStrictEqual(decision.hintedZones, like.hintedZones)
    return (
      this.#service === other.#service &&
      !this.candidates.hasConflicts &&
      !other.candidates.hasConflicts &&
      this.#decisions.length === other.#decisions.length &&
      this.#decisions.every((decision, index) => isSame(decision, other.#decisions[index]))
    )
  }

  /** Whether some nodes may use other endpoints because hints name them. */
  get hasNodeHints(): boolean {
    return this.#decisions.some(({ hintedNodes }) => hintedNodes !== undefined)
  }

  /** For each decision that depends on it, whether hints name the node. */
  namedBy(node: string): string {
    let named = ''
    for (const { hintedNodes } of this.#decisions) if (hintedNodes) named += hintedNodes.has(node) ? '1' : '0'
    return named
  }

  /** Whether nodes in different zones may use different endpoints. */
  get dependsOnZone(): boolean {
    return this.#decisions.some(({ hintedZones }) => hintedZones !== undefined)
  }

  /**
   * The hints that a node follows, decision by decision; none where there are none. Nodes are tried before zones, and hints count only
   * when one of them is for this node (or this zone).
   */
  hintsFor({ name, zone }: NodeTopology): readonly Hint[] {
    if (!this.hasHints) return none
    return this.#decisions.map(({ hintedNodes, hintedZones }) => {
      if (name !== '' && hintedNodes?.has(name)) return 'node'
      return zone !== '' && hintedZones?.has(zone) ? 'zone' : 'none'
    })
  }

  /** What a node that follows these hints uses a candidate for; undefined when for nothing. */
  select(candidate: Candidate, node: NodeTopology, hints: readonly Hint[]): SelectedEndpoint | undefined {
    const { endpoint } = candidate
    const local = endpoint.node !== '' && endpoint.node === node.name
    let scopes = 0
    for (let index = 0; index < this.#decisions.length; index++) {
      scopes |= this.#scopes(index, candidate, local, node, hints)
    }
    // With no way in from outside, an endpoint that cluster IPs do not use is of no use.
    const isUseful = this.#policy.external ? scopes !== 0 : (scopes & Scope.internal) !== 0
    if (!isUseful)
      return this.#drains(candidate, node, local, hints)
        ? { endpoint, local, scopes: 0, portScopes: undefined }
        : undefined
    const isDecidedAtOnce = this.#decisions.length === 1 && !this.candidates.hasConflicts
    const portScopes = isDecidedAtOnce ? undefined : this.#portScopes(candidate, local, node, hints, scopes)
    return { endpoint, local, scopes, portScopes }
  }

  /** The scopes port by port; undefined when they are the same for all ports that it serves. */
  #portScopes(
    candidate: Candidate,
    local: boolean,
    node: NodeTopology,
    hints: readonly Hint[],
    scopes: number,
  ): readonly number[] | undefined {
    const portScopes: number[] = new Array(candidate.counted.length).fill(0)
    for (const [index, { ports }] of this.#decisions.entries()) {
      const bits = this.#scopes(index, candidate, local, node, hints)
      for (const port of ports) portScopes[port] = (portScopes[port] as number) | bits
    }
    const isUniform = portScopes.every((bits, port) => bits === scopes || !candidate.served[port])
    return isUniform ? undefined : portScopes
  }

  /** Why a node that follows these hints does not use a candidate. */
  reason(candidate: Candidate, node: NodeTopology, hints: readonly Hint[]): EndpointReason {
    if (candidate.reason) return candidate.reason
    const { conditions } = candidate.endpoint
    const index = this.#decisions.findIndex((decision) => isIn(decision, candidate))
    const decision = this.#decisions[index]
    const hint = hints[index]
    if (!decision || isInClusterSet(decision, candidate, hintedFor(candidate.endpoint, hint, node))) return 'not-local'
    if (!conditions.ready) return standsIn(conditions) ? 'terminating' : 'not-ready'
    return hint === 'node' ? 'hints-other-node' : 'hints-other-zone'
  }

  /**
   * Whether an endpoint gets no new clients, but those that it has may stay: it is terminating and still serves, while others are
   * ready. TCP connections stay by themselves. UDP flows stay only while the node knows that their endpoint exists, so such
   * endpoints are sent without any scope, to the nodes that could have used them.
   */
  #drains({ endpoint, reason }: Candidate, { zone }: NodeTopology, local: boolean, hints: readonly Hint[]): boolean {
    const { udp, internalLocal, external } = this.#policy
    if (!udp || reason !== undefined || !standsIn(endpoint.conditions)) return false
    if (internalLocal && !external && !local) return false
    if (hints.includes('node')) return local
    return !hints.includes('zone') || endpoint.zone === zone
  }

  /** For which traffic one decision uses a candidate. */
  #scopes(index: number, candidate: Candidate, local: boolean, node: NodeTopology, hints: readonly Hint[]): number {
    const decision = this.#decisions[index] as Decision
    if (!isIn(decision, candidate)) return 0
    const { internalLocal, externalLocal } = this.#policy
    const cluster = isInClusterSet(decision, candidate, hintedFor(candidate.endpoint, hints[index], node))
    const own = local && isInLocalSet(decision, candidate)
    return (
      ((internalLocal ? own : cluster) ? Scope.internal : 0) |
      ((externalLocal ? own : cluster) ? Scope.external : 0) |
      (cluster ? Scope.cluster : 0)
    )
  }
}

export function selectEndpoints(
  service: localv1.Service,
  endpoints: readonly EndpointRecord[],
  node: NodeTopology,
): Selection {
  const selector = new EndpointSelector(service, finish(Candidates.make(service, endpoints)))
  const hints = selector.hintsFor(node)
  const used: SelectedEndpoint[] = []
  const leftOut: LeftOutEndpoint[] = []
  for (const candidate of selector.candidates.list) {
    const selected = selector.select(candidate, node, hints)
    if (selected) used.push(selected)
    else leftOut.push({ endpoint: candidate.endpoint, reason: selector.reason(candidate, node, hints) })
  }
  return { used, leftOut, availability: selector.availability }
}

const standsIn = (conditions: EndpointRecord['conditions']): boolean => conditions.serving && conditions.terminating

const isIn = ({ family, ports }: Pick<Decision, 'family' | 'ports'>, { endpoint, counted }: Candidate): boolean =>
  endpoint[family].length > 0 && counted[ports[0] as number] === true

/** Terminating endpoints stand in when none is ready, for the whole cluster and for one node alike. */
const isInClusterSet = ({ hasReady }: Decision, { endpoint: { conditions } }: Candidate, isHinted: boolean): boolean =>
  conditions.ready ? isHinted : !hasReady && standsIn(conditions)

const isInLocalSet = ({ readyNodes }: Decision, { endpoint: { conditions, node } }: Candidate): boolean =>
  conditions.ready || (!readyNodes?.has(node) && standsIn(conditions))

function hintedFor({ hints }: EndpointRecord, hint: Hint | undefined, { name, zone }: NodeTopology): boolean {
  if (hint === 'node') return name !== '' && (hints?.nodes.includes(name) ?? false)
  return hint === 'zone' ? (hints?.zones.includes(zone) ?? false) : true
}

function policyOf(service: localv1.Service): Policy {
  const has = (set: localv1.IPSet | undefined) => set !== undefined && set.v4.length + set.v6.length > 0
  return {
    internalLocal: service.internalTrafficToLocal,
    externalLocal: service.externalTrafficToLocal,
    external:
      service.ports.some((port) => port.nodePort > 0) ||
      has(service.ips?.externalIps) ||
      has(service.ips?.loadBalancerIps),
    udp: service.ports.some(({ protocol }) => protocol === localv1.Protocol.UDP),
  }
}

// The loops below look at every endpoint of a service whenever one of them changes: there may be 50,000, so they make no lists.

function portsDecidedTogether(candidates: readonly Candidate[], family: 'v4' | 'v6', portCount: number): number[][] {
  const all = Array.from({ length: portCount }, (_, index) => index)
  let counted: PortFlags | undefined
  for (const candidate of candidates) {
    if (candidate.endpoint[family].length === 0) continue
    counted ??= candidate.counted
    if (!sameFlags(candidate.counted, counted)) return all.map((port) => [port])
  }
  const served = all.filter((port) => counted?.[port])
  return served.length > 0 ? [served] : []
}

/** The endpoints of a slice have the same flags. */
const sameFlags = (a: PortFlags, b: PortFlags): boolean => a === b || a.every((flag, port) => flag === b[port])

function decisionOf(
  candidates: readonly Candidate[],
  family: 'v4' | 'v6',
  ports: readonly number[],
  { internalLocal, externalLocal }: Policy,
): Decision {
  const group = { family, ports }
  const readyNodes = internalLocal || externalLocal ? new Set<string>() : undefined
  let hintedNodes: Set<string> | undefined = new Set()
  let hintedZones: Set<string> | undefined = new Set()
  let hasReady = false
  let isAvailable = false
  for (const candidate of candidates) {
    if (!isIn(group, candidate)) continue
    const { conditions, hints, node } = candidate.endpoint
    isAvailable ||= conditions.ready || standsIn(conditions)
    if (!conditions.ready) continue
    hasReady = true
    readyNodes?.add(node)
    hintedNodes = withNames(hintedNodes, hints?.nodes)
    hintedZones = withNames(hintedZones, hints?.zones)
  }
  if (!hasReady) return { ...group, hasReady, isAvailable, hintedNodes: undefined, hintedZones: undefined, readyNodes }
  return { ...group, hasReady, isAvailable, hintedNodes, hintedZones, readyNodes }
}

/** All that hints name so far; undefined from the first endpoint on that has none. */
function withNames(known: Set<string> | undefined, names: readonly string[] | undefined): Set<string> | undefined {
  if (!known || !names || names.length === 0) return undefined
  for (const name of names) known.add(name)
  return known
}
