import { CidrSet, type Family, familyOf, isLoopback } from '@kpng/api'
import type { FrontendAddress, Protocol } from '@kpng/client'
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
  /** `endpoint`: it goes to one of `endpoints`. `passed`: kpng leaves it alone, and it is routed like any other packet. */
  readonly outcome: 'endpoint' | 'refused' | 'dropped' | 'passed'
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
  /** The address and port of a Service that it came to. Missing if it came to none. */
  readonly frontend?: Frontend
  /** Which endpoints of the frontend count: those for clients inside the cluster, or those for everybody else. */
  readonly audience?: 'inside' | 'outside'
  /** Each is chosen with the same probability, unless session affinity remembers the client. */
  readonly endpoints: readonly FrontendEndpoint[]
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
 * @param ownAddresses all addresses of this machine: node ports are served on those alone
 */
export function routeOf(
  table: FrontendTable,
  connection: Connection,
  ownAddresses: readonly string[] = table.node.addresses,
): Route {
  const { to, port, protocol } = connection
  const family = familyOf(to)
  const at = (where: Partial<FrontendAddress>) =>
    table.get(frontendId({ kind: 'clusterIP', family, address: to, protocol, port, ...where }))
  const exact = at({})
  if (exact) return routeThrough(exact, connection)
  if (isClusterIp(table, to)) return nowhere('refused', 'no-such-port')
  const whole = at({ protocol: 'any', port: 0 })
  if (whole) return routeThrough(whole, connection)
  const nodePort = ownAddresses.includes(to) && !isLoopback(to) ? at({ kind: 'nodePort', address: '' }) : undefined
  if (nodePort && servesNodePorts(table.node, family, to)) return routeThrough(nodePort, connection)
  if (table.node.serviceCidrs.has(to)) return nowhere('dropped', 'unallocated')
  return nowhere('passed', nodePort ? 'not-a-node-port-address' : 'not-a-service')
}

/** What happens to a connection that came to a frontend. */
export function routeThrough(frontend: Frontend, { client }: Pick<Connection, 'client'>): Route {
  const { inside, outside, allowedSources } = frontend
  if (allowedSources && !isAllowed(client, frontend.address, allowedSources)) {
    return { ...nowhere('dropped', 'source-not-allowed'), frontend }
  }
  const audience = client.kind === 'outside' ? 'outside' : 'inside'
  const { endpoints, otherwise } = audience === 'outside' ? outside : inside
  if (endpoints.length > 0) return { outcome: 'endpoint', why: 'served', frontend, audience, endpoints }
  const none = otherwise === 'drop' ? nowhere('dropped', 'no-local-endpoints') : nowhere('refused', 'no-endpoints')
  return { ...none, frontend, audience }
}

/** Whether an endpoint sees the address of this node instead of the client's. */
export function isMasqueraded(
  { masquerade }: Frontend,
  client: Client,
  endpoint: FrontendEndpoint,
  node: NodeFacts,
): boolean {
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

const nowhere = (outcome: Route['outcome'], why: Route['why']): Route => ({ outcome, why, endpoints: [] })

function isClusterIp(table: FrontendTable, address: string): boolean {
  for (const frontend of table.all()) {
    if (frontend.kind === 'clusterIP' && frontend.address === address && frontend.protocol !== 'any') return true
  }
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
