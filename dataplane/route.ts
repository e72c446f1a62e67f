import { CidrSet, type Family, familyOf, isLoopback } from '@kpng/api'
import type { BackendFeatures, FrontendAddress, Protocol } from '@kpng/client'
import { type Frontend, type FrontendEndpoint, frontendId } from './frontend.js'
import type { FrontendTable } from './frontend-table.js'
import type { NodeFacts } from './node.js'

/** Who opens a connection, as this node sees it. */
export interface Client {
  /** `node`: this node itself. */
  readonly kind: 'pod' | 'node' | 'outside'
  /** Undefined: any client of the kind. For the node itself: the address that it sends from. */
  readonly ip?: string
}

/** A new connection as it reaches this node. */
export interface Connection {
  /** Who opens it. */
  readonly client: Client
  /** The address that it is sent to. */
  readonly to: string
  /** The port that it is sent to. */
  readonly port: number
  /** Its protocol. */
  readonly protocol: Protocol
}

/** What happens to a new connection on this node, and the decision that led to it. */
export interface Route {
  /**
   * `endpoint`: it goes to one of `endpoints`. `reset`: it is accepted and then reset. `passed`: kpng leaves it alone, and it is routed
   * like any other packet.
   */
  readonly outcome: 'endpoint' | 'refused' | 'dropped' | 'reset' | 'passed'
  /** The decision that led to the outcome. */
  readonly why:
    | 'served'
    /** Nobody serves the port. */
    | 'no-endpoints'
    /** A Local policy, and no endpoint on this node. */
    | 'no-local-endpoints'
    /** loadBalancerSourceRanges do not contain the client. */
    | 'source-not-allowed'
    /** A Service has the cluster IP, but not this port. */
    | 'no-such-port'
    /** The address is in a range of cluster IPs, and no Service has it. */
    | 'unallocated'
    /** A node port exists, but not on this address of the node. */
    | 'not-a-node-port-address'
    | 'not-a-service'
    /** A Service has the address and port, but this data plane serves no such kind of address or protocol. */
    | 'not-supported'
  /** The address and port of a Service that it came to. Missing if it came to none. */
  readonly frontend?: Frontend
  /** Which endpoints of the frontend count: those for clients inside the cluster, or those for everybody else. */
  readonly audience?: 'inside' | 'outside'
  /** Each is chosen with the same probability, unless session affinity remembers the client. */
  readonly endpoints: readonly FrontendEndpoint[]
}

/** What of a data plane decides where connections go. A backend's `features()` say it. */
export type RouteFeatures = Pick<
  BackendFeatures,
  | 'kinds'
  | 'protocols'
  | 'sourceRanges'
  | 'wholeAddresses'
  | 'keepsSourceAddress'
  | 'localhostNodePorts'
  | 'guardsClusterIps'
  | 'hasServiceAddresses'
  | 'connectsSockets'
  | 'drops'
>

/** A data plane that does everything as kube-proxy's nftables mode does. */
export const allFeatures: RouteFeatures = {
  kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
  protocols: ['tcp', 'udp', 'sctp'],
  sourceRanges: true,
  wholeAddresses: true,
  keepsSourceAddress: true,
  localhostNodePorts: false,
}

/** kube-proxy's iptables mode. Node ports answer on 127.0.0.1 unless localhostNodePorts is off. */
export const iptablesModeFeatures: RouteFeatures = {
  ...allFeatures,
  localhostNodePorts: ['IPv4'],
  guardsClusterIps: false,
}

/** What is known of this machine and its data plane. */
export interface RouteOptions {
  /** All addresses of this machine: node ports are served on those alone. Default: those of the Node object. */
  readonly ownAddresses?: readonly string[] | undefined
  /** Default: `allFeatures`. */
  readonly features?: RouteFeatures | undefined
}

/** What kind of client an address is. Pods that are told by their interface cannot be told by their address: the caller must know. */
export function clientOf(node: NodeFacts, ip: string): Client {
  if (node.pods.has(ip)) return { kind: 'pod', ip }
  if (node.addresses.includes(ip)) return { kind: 'node', ip }
  return { kind: node.onNode.has(ip) ? 'pod' : 'outside', ip }
}

/**
 * Where this node sends a new connection. The order of the questions is that of the rules: cluster IPs, other addresses of Services,
 * whole addresses, node ports, the ranges of cluster IPs.
 */
export function routeOf(
  table: FrontendTable,
  connection: Connection,
  { ownAddresses = table.node.addresses, features = allFeatures }: RouteOptions = {},
): Route {
  const { to, port, protocol } = connection
  const family = familyOf(to)
  const isGuarded = features.guardsClusterIps ?? true
  const at = (where: Partial<FrontendAddress>) =>
    table.get(frontendId({ kind: 'clusterIP', family, address: to, protocol, port, ...where }))
  const exact = at({})
  if (exact) return routeThrough(exact, connection, features)
  if (isClusterIp(table, to)) return nowhere(isGuarded ? 'refused' : 'passed', 'no-such-port')
  const whole = at({ protocol: 'any', port: 0 })
  if (whole) return routeThrough(whole, connection, features)
  const isOwn = isLoopback(to) ? hasLoopbackNodePorts(features, family) : ownAddresses.includes(to)
  const nodePort = isOwn ? at({ kind: 'nodePort', address: '' }) : undefined
  if (nodePort && servesNodePorts(table.node, family, to)) return routeThrough(nodePort, connection, features)
  if (features.hasServiceAddresses && isServiceAddress(table, to)) return nowhere('refused', 'no-such-port')
  if (table.node.serviceCidrs.has(to)) return nowhere(isGuarded ? 'dropped' : 'passed', 'unallocated')
  return nowhere('passed', nodePort ? 'not-a-node-port-address' : 'not-a-service')
}

/** What happens to a connection that came to a frontend. */
export function routeThrough(
  frontend: Frontend,
  { client }: Pick<Connection, 'client'>,
  features: RouteFeatures = allFeatures,
): Route {
  const { inside, outside, allowedSources } = frontend
  if (!isSupported(frontend, features)) return { ...nowhere('passed', 'not-supported'), frontend }
  if (features.sourceRanges && allowedSources && !isAllowed(client, frontend.address, allowedSources)) {
    return { ...dropped(frontend, client, 'source-not-allowed', features), frontend }
  }
  const audience = client.kind === 'outside' ? 'outside' : 'inside'
  const { endpoints, otherwise } = audience === 'outside' ? outside : inside
  if (endpoints.length > 0) return { outcome: 'endpoint', why: 'served', frontend, audience, endpoints }
  const none =
    otherwise === 'drop'
      ? dropped(frontend, client, 'no-local-endpoints', features)
      : nowhere('refused', 'no-endpoints')
  return { ...none, frontend, audience }
}

/** Whether an endpoint sees the address of this node instead of the client's. */
export function isMasqueraded(
  { masquerade, protocol, allowedSources }: Frontend,
  client: Client,
  endpoint: FrontendEndpoint,
  node: NodeFacts,
  { keepsSourceAddress, connectsSockets }: Pick<RouteFeatures, 'keepsSourceAddress' | 'connectsSockets'> = allFeatures,
): boolean {
  if (!keepsSourceAddress) return true
  if (connectsSockets && protocol === 'tcp' && !allowedSources && isPodHere(client, node)) return false
  // Otherwise the endpoint would answer itself directly, from an address that it did not ask.
  if (client.ip === endpoint.ip) return true
  switch (masquerade) {
    case 'always':
      return true
    case 'node':
      return client.kind === 'node'
    case 'notPods':
      // If pods cannot be told from others, nobody is masqueraded.
      return client.kind !== 'pod' && node.pods.cidrs.some(({ family }) => family === familyOf(endpoint.ip))
  }
}

/** A pod that is not named is one of this node. */
const isPodHere = ({ kind, ip }: Client, node: NodeFacts): boolean =>
  kind === 'pod' && (ip === undefined || node.onNode.has(ip))

const nowhere = (outcome: Route['outcome'], why: Route['why']): Route => ({ outcome, why, endpoints: [] })

/** What happens to a connection that should be dropped. Only TCP can be reset. */
function dropped(frontend: Frontend, client: Client, why: Route['why'], { drops = 'always' }: RouteFeatures): Route {
  const { inside, outside, protocol } = frontend
  const isServed = inside.endpoints.length > 0 || outside.endpoints.length > 0
  const isDropped = {
    always: true,
    'not-own-sources': client.kind !== 'node' || why !== 'source-not-allowed',
    unserved: !isServed,
    never: false,
  }[drops]
  if (isDropped) return nowhere('dropped', why)
  if (!isServed) return nowhere('refused', why)
  return nowhere(protocol === 'tcp' ? 'reset' : 'dropped', why)
}

/** Whether a data plane serves such an address at all. */
export const isSupported = ({ kind, protocol }: Frontend, features: RouteFeatures): boolean =>
  features.kinds.includes(kind) &&
  (protocol === 'any' ? features.wholeAddresses : features.protocols.includes(protocol))

const hasLoopbackNodePorts = ({ localhostNodePorts }: RouteFeatures, family: Family): boolean =>
  typeof localhostNodePorts === 'boolean' ? localhostNodePorts : localhostNodePorts.includes(family)

function isClusterIp(table: FrontendTable, address: string): boolean {
  for (const frontend of table.all()) {
    if (frontend.kind === 'clusterIP' && frontend.address === address && frontend.protocol !== 'any') return true
  }
  return false
}

function isServiceAddress(table: FrontendTable, address: string): boolean {
  for (const frontend of table.all()) if (frontend.address === address) return true
  return false
}

const servesNodePorts = ({ nodePortCidrs }: NodeFacts, family: Family, address: string): boolean =>
  new CidrSet(nodePortCidrs[family]).has(address)

/** A packet of the node to an address that is on one of its interfaces carries that address as its source. */
function isAllowed(client: Client, address: string, sources: NonNullable<Frontend['allowedSources']>): boolean {
  const allowed = new CidrSet(sources)
  if (client.kind === 'node' && allowed.has(address)) return true
  return client.ip === undefined || allowed.has(client.ip)
}
