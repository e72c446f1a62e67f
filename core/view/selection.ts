import type { localv1 } from '@kpng/api'
import { type EndpointRecord, none } from '../store/index.js'
import { servedPorts, targetPortOf } from './ports.js'

// Which endpoints one node should use for one service, and why each other one is left out. Pure: no store, no clock.
// The rules are kube-proxy's, per address family and per service port.

/** What selection needs to know of the node. A node nobody knows has an empty zone. */
export interface NodeTopology {
  readonly name: string
  readonly zone: string
}

/** Bits: for which traffic an endpoint may be used. See EndpointScopes in the contract. */
export const Scope = { internal: 1, external: 2, cluster: 4 } as const

export type Reason =
  /** Not ready, and not a terminating one that could stand in. */
  | 'not-ready'
  /** Terminating while others are ready. */
  | 'terminating'
  /** The hints keep this node's traffic on other nodes' endpoints, or in other zones'. */
  | 'hints-other-node'
  | 'hints-other-zone'
  /** The traffic policy is Local and the endpoint is on another node. */
  | 'not-local'
  /** The same address is in another slice too, and that one counts. */
  | 'duplicate'
  /** Serves none of the service's ports. */
  | 'no-port'

export interface SelectedEndpoint {
  readonly endpoint: EndpointRecord
  readonly local: boolean
  /** Union of the scopes over all ports. */
  readonly scopes: number
  /** The scopes port by port, in the order of the service's ports; only where they differ. */
  readonly portScopes: readonly number[] | undefined
}

export interface LeftOutEndpoint {
  readonly endpoint: EndpointRecord
  readonly reason: Reason
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

/** One endpoint on its way through the decision. */
interface Candidate {
  readonly endpoint: EndpointRecord
  readonly local: boolean
  /** '1' or '0' a port of the service: whether it serves it. */
  readonly served: string
  /** The same, without the ports that it serves under an address and number for which another one counts. */
  counted: string
  readonly portScopes: number[]
  reason: Reason | undefined
}

export function selectEndpoints(
  service: localv1.Service,
  endpoints: readonly EndpointRecord[],
  node: NodeTopology,
): Selection {
  const portCount = Math.max(1, service.ports.length)
  const servedBySlice = new Map<EndpointRecord['ports'], string>()
  const candidates = endpoints.map((endpoint): Candidate => {
    let served = servedBySlice.get(endpoint.ports)
    if (served === undefined) {
      served = servedPorts(service, endpoint.ports)
      servedBySlice.set(endpoint.ports, served)
    }
    const local = endpoint.node !== '' && endpoint.node === node.name
    return {
      endpoint,
      local,
      served,
      counted: served,
      portScopes: new Array(portCount).fill(0),
      reason: served.includes('1') ? undefined : 'no-port',
    }
  })

  setDuplicatesAside(service, candidates)
  const policy = policyOf(service)
  const availability = Array.from({ length: portCount }, () => ({ v4: false, v6: false }))
  for (const family of ['v4', 'v6'] as const) {
    const inFamily = candidates.filter(({ endpoint }) => endpoint[family].length > 0)
    if (inFamily.length === 0) continue
    for (const ports of portsDecidedTogether(inFamily, portCount)) {
      const serving = inFamily.filter(({ counted }) => counted[ports[0] as number] === '1')
      decide(serving, ports, policy, node)
      const available = serving.some(({ endpoint: { conditions } }) => conditions.ready || standsIn(conditions))
      for (const port of ports) (availability[port] as { v4: boolean; v6: boolean })[family] = available
    }
  }
  return { ...collect(candidates, policy), availability }
}

interface Policy {
  readonly internalLocal: boolean
  readonly externalLocal: boolean
  /** Has a node port, an external or a load-balancer IP: traffic from outside can arrive at all. */
  readonly external: boolean
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
  }
}

/** Ports that are served by the same endpoints are decided once. Nearly always that is all of them. */
function portsDecidedTogether(candidates: readonly Candidate[], portCount: number): number[][] {
  const all = Array.from({ length: portCount }, (_, index) => index)
  const same = candidates.every(({ counted }) => counted === candidates[0]?.counted)
  if (!same) return all.map((port) => [port])
  const served = all.filter((port) => candidates[0]?.counted[port] === '1')
  return served.length > 0 ? [served] : []
}

const standsIn = (conditions: EndpointRecord['conditions']): boolean => conditions.serving && conditions.terminating

function decide(candidates: readonly Candidate[], ports: readonly number[], policy: Policy, node: NodeTopology): void {
  const ready = candidates.filter(({ endpoint }) => endpoint.conditions.ready)
  const hint = hintToFollow(ready, node)
  const hinted = hint === undefined ? ready : ready.filter(({ endpoint }) => isHinted(endpoint, hint, node))
  const clusterSet = new Set(
    hinted.length > 0 ? hinted : candidates.filter(({ endpoint }) => standsIn(endpoint.conditions)),
  )

  const localReady = ready.filter(({ local }) => local)
  const localSet = new Set(
    localReady.length > 0
      ? localReady
      : candidates.filter(({ endpoint, local }) => local && standsIn(endpoint.conditions)),
  )

  const internalSet = policy.internalLocal ? localSet : clusterSet
  const externalSet = policy.externalLocal ? localSet : clusterSet
  for (const candidate of candidates) {
    const scopes =
      (internalSet.has(candidate) ? Scope.internal : 0) |
      (externalSet.has(candidate) ? Scope.external : 0) |
      (clusterSet.has(candidate) ? Scope.cluster : 0)
    for (const port of ports) candidate.portScopes[port] = (candidate.portScopes[port] ?? 0) | scopes
    candidate.reason ??= whyNotInCluster(candidate, hint, clusterSet) ?? 'not-local'
  }
}

function whyNotInCluster(candidate: Candidate, hint: Hint | undefined, clusterSet: Set<Candidate>): Reason | undefined {
  const { conditions } = candidate.endpoint
  if (clusterSet.has(candidate)) return undefined
  if (!conditions.ready) return standsIn(conditions) ? 'terminating' : 'not-ready'
  return hint === 'node' ? 'hints-other-node' : 'hints-other-zone'
}

type Hint = 'node' | 'zone'

/**
 * Hints count only when every ready endpoint has them and at least one is for this node (or this zone): anything else is a
 * sign that they are being rolled out or are stale, and then all endpoints are used. Nodes are tried before zones.
 */
function hintToFollow(ready: readonly Candidate[], node: NodeTopology): Hint | undefined {
  if (ready.length === 0) return undefined
  if (
    ready.every(({ endpoint }) => (endpoint.hints?.nodes.length ?? 0) > 0) &&
    ready.some(({ endpoint }) => isHinted(endpoint, 'node', node))
  ) {
    return 'node'
  }
  if (
    ready.every(({ endpoint }) => (endpoint.hints?.zones.length ?? 0) > 0) &&
    ready.some(({ endpoint }) => isHinted(endpoint, 'zone', node))
  ) {
    return 'zone'
  }
  return undefined
}

const isHinted = (endpoint: EndpointRecord, hint: Hint, node: NodeTopology): boolean =>
  hint === 'node'
    ? (endpoint.hints?.nodes.includes(node.name) ?? false)
    : node.zone !== '' && (endpoint.hints?.zones.includes(node.zone) ?? false)

function collect(candidates: readonly Candidate[], policy: Policy): Pick<Selection, 'used' | 'leftOut'> {
  const used: SelectedEndpoint[] = []
  const leftOut: LeftOutEndpoint[] = []
  for (const { endpoint, local, served, portScopes, reason } of candidates) {
    const scopes = portScopes.reduce((union, port) => union | port, 0)
    // With no way in from outside, an endpoint that cluster IPs do not use is of no use.
    const useful = policy.external ? scopes !== 0 : (scopes & Scope.internal) !== 0
    if (!useful) {
      leftOut.push({ endpoint, reason: reason ?? 'not-local' })
      continue
    }
    const uniform = portScopes.every((port, index) => port === scopes || served[index] === '0')
    used.push({ endpoint, local, scopes, portScopes: uniform ? undefined : portScopes })
  }
  return { used, leftOut }
}

/**
 * One address in two slices (an endpoint on its way from one to the other, or an address that a new pod got already): for each
 * port that both serve under the same number, the one that is not terminating counts.
 */
function setDuplicatesAside(service: localv1.Service, candidates: readonly Candidate[]): void {
  for (const alike of withSameAddresses(candidates)) {
    for (let port = 0; port < (alike[0] as Candidate).served.length; port++) {
      const counting = new Map<number | undefined, Candidate>()
      for (const candidate of alike) {
        if (candidate.served[port] === '0') continue
        const mapping = service.ports[port]
        const number = mapping && targetPortOf(mapping, candidate.endpoint.ports)
        const known = counting.get(number)
        const isBetter = known?.endpoint.conditions.terminating && !candidate.endpoint.conditions.terminating
        if (!known || isBetter) counting.set(number, candidate)
        const aside = isBetter ? known : known && candidate
        if (aside) aside.counted = `${aside.counted.slice(0, port)}0${aside.counted.slice(port + 1)}`
      }
    }
    for (const candidate of alike) if (!candidate.counted.includes('1')) candidate.reason ??= 'duplicate'
  }
}

/** The candidates that are not the only ones of their addresses, which is rare. */
function withSameAddresses(candidates: readonly Candidate[]): Iterable<readonly Candidate[]> {
  const first = new Map<string, Candidate>()
  const repeated = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    const { v4, v6 } = candidate.endpoint
    const addresses = `${v4.join()}|${v6.join()}`
    const known = first.get(addresses)
    if (!known) first.set(addresses, candidate)
    else {
      const alike = repeated.get(addresses) ?? [known]
      alike.push(candidate)
      repeated.set(addresses, alike)
    }
  }
  return repeated.values()
}

/** One text for one way to be reached. */
export function addressesAndPorts({ v4, v6, ports }: EndpointRecord): string {
  let key = `${v4.join()}|${v6.join()}`
  for (const port of ports ?? none) key += `|${port.name}:${port.port}:${port.protocol ?? ''}`
  return key
}
