import { type FrontendAnswer, hostPort } from '@kpng/api'
import type { FrontendAddress } from '@kpng/client'
import { type Flow, listFlows } from '@kpng/linux'

/** The flows of a frontend that exist now, by endpoint, the most first. Undefined if conntrack cannot be read here. */
export async function flowsOf(frontend: FrontendAddress): Promise<FrontendAnswer['flows']> {
  const { family, protocol, port } = frontend
  // A Service that has a whole address has flows of every protocol and port.
  if (protocol === 'any' || process.platform !== 'linux') return undefined
  try {
    return flowsByEndpoint(frontend, await listFlows({ family, protocol, ports: [port] }))
  } catch {
    return undefined
  }
}

export function flowsByEndpoint(
  { kind, address, port }: FrontendAddress,
  flows: readonly Flow[],
): FrontendAnswer['flows'] {
  const counts = new Map<string, number>()
  for (const { destination, destinationPort, answeredBy, answeredByPort, isRedirected } of flows) {
    if (!isRedirected || destinationPort !== port || (kind !== 'nodePort' && destination !== address)) continue
    const endpoint = hostPort(answeredBy, answeredByPort)
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1)
  }
  return [...counts].map(([endpoint, count]) => ({ endpoint, count })).sort((a, b) => b.count - a.count)
}
