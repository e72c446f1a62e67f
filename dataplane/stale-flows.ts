import type { Family } from '@kpng/api'
import type { FrontendAddress } from '@kpng/client'
import { endpointKey, type Frontend, type FrontendEndpoint, frontendId } from './frontend.js'
import type { FrontendChange, FrontendTable } from './frontend-table.js'

// A UDP client that keeps its port is one flow to the kernel, and stays with the endpoint of its first packet for as long as it
// sends. When that endpoint is gone, the flow must be deleted, so that the next packet gets another endpoint. TCP does not need this,
// because its connections end. As in kube-proxy, a flow stays while its endpoint exists and serves, even if the endpoint is
// terminating or no longer used for new clients, so that sessions can drain.

/** A UDP flow in the kernel's connection table. */
export interface Flow {
  /** The family of all its addresses. */
  readonly family: Family
  /** Where the client sends to. */
  readonly destination: string
  /** The port that the client sends to. */
  readonly destinationPort: number
  /** The address that answers. */
  readonly answeredBy: string
  /** The port of the endpoint. */
  readonly answeredByPort: number
  /** The destination was changed on the way. */
  readonly isRedirected: boolean
}

/** Flows to this address and port may go to an endpoint that no longer serves. */
export type FlowCheck = Pick<FrontendAddress, 'kind' | 'family' | 'address' | 'protocol' | 'port'>

/** Where stale flows may be after a change. */
export const flowChecks = (changes: Iterable<FrontendChange>): FlowCheck[] => {
  const checks: FlowCheck[] = []
  for (const { before, after } of changes) {
    const frontend = after ?? before
    if (frontend && carriesUdp(frontend) && mayLeaveStaleFlows(before, after)) checks.push(frontend)
  }
  return checks
}

/** All checks, for after a start: it is unknown what changed before. */
export const allFlowChecks = (table: FrontendTable): FlowCheck[] => [...table.all()].filter(carriesUdp)

const carriesUdp = ({ protocol }: FlowCheck): boolean => protocol === 'udp' || protocol === 'any'

function mayLeaveStaleFlows(before: Frontend | undefined, after: Frontend | undefined): boolean {
  // Clients may have sent to the address before it was served: their flows bypass the rules.
  if (!before || !after || before.inside.endpoints.length + before.outside.endpoints.length === 0) return true
  const kept = servingKeys(after)
  return servingEndpoints(before).some((endpoint) => !kept.has(endpointKey(endpoint)))
}

/** Whether a flow under one of the checks must be deleted, according to the table at this moment. */
export function staleness(checks: Iterable<FlowCheck>, table: FrontendTable): (flow: Flow) => boolean {
  const serving = new Map<string, ReadonlySet<string> | undefined>()
  for (const check of checks) {
    const frontend = table.get(frontendId(check))
    serving.set(frontendId(check), frontend && servingKeys(frontend))
  }
  const isStaleFor = (id: string, { answeredBy: ip, answeredByPort: port, isRedirected }: Flow): boolean => {
    const keys = serving.get(id)
    // The frontend is gone. A flow that was not redirected never went through it.
    if (keys === undefined) return isRedirected
    return !keys.has(endpointKey({ ip, port })) && !keys.has(ip)
  }
  return (flow) => {
    const { family, destination: address, destinationPort: port, isRedirected } = flow
    const withPort = frontendId({ kind: 'clusterIP', family, address, protocol: 'udp', port })
    if (serving.has(withPort)) return isStaleFor(withPort, flow)
    if (serving.has(address)) return isStaleFor(address, flow)
    const nodePort = frontendId({ kind: 'nodePort', family, address: '', protocol: 'udp', port })
    // Packets to the same port of another machine may pass through this node.
    const isForNode = isRedirected || table.node.addresses.includes(address)
    return isForNode && serving.has(nodePort) && isStaleFor(nodePort, flow)
  }
}

const servingEndpoints = ({ inside, outside, draining }: Frontend): FrontendEndpoint[] => [
  ...inside.endpoints,
  ...(outside === inside ? [] : outside.endpoints),
  ...draining,
]

const servingKeys = (frontend: Frontend): Set<string> => new Set(servingEndpoints(frontend).map(endpointKey))
