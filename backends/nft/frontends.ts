import type { localv1 } from '@kpng/api'
import { endpointsOfPort, type PortEndpoint, type ServiceEndpoints } from '@kpng/client'
import {
  type Address,
  type AddressRange,
  contains,
  type Family,
  mergeRanges,
  parseAddress,
  parseCidr,
} from './address.js'
import { type Answers, answersOf, type Complain, isPort, type PortInFamily } from './answers.js'
import { nodePortKey, type Protocol, protocolOf, serviceKey } from './element.js'
import type { NodeContext } from './node-context.js'

/** An address with a port, or a node port, at which a service is reached, and who answers there. */
export interface Frontend {
  readonly kind: 'cluster' | 'external' | 'nodePort'
  readonly family: Family
  readonly protocol: Protocol
  /** Service key, or node-port key: see names.ts. */
  readonly key: string
  /** Policy Local applies, so that who asks decides. Never for cluster IPs: their policy is in `endpoints` already. */
  readonly local: boolean
  /** Endpoint data: for cluster IPs those of the internal policy, else all of the cluster. */
  readonly endpoints: readonly string[]
  /** Endpoint data for askers from outside, under policy Local. */
  readonly localEndpoints: readonly string[]
  /** Somebody in the cluster serves it, though perhaps not for everybody here. */
  readonly servedSomewhere: boolean
  /** Addresses of endpoints that are on this node. */
  readonly endpointsHere: readonly string[]
  /** Only these sources may ask; undefined: everybody. */
  readonly sources: readonly AddressRange[] | undefined
  /** How long a client is remembered; undefined: not at all. */
  readonly affinitySeconds: number | undefined
}

/** Everything at which a service is reached on this node. */
export function frontendsOf(item: ServiceEndpoints, context: NodeContext, complain: Complain = () => {}): Frontend[] {
  const frontends: Frontend[] = []
  if (item.service.mapIp && item.service.ports.length === 0) {
    complain('it maps a whole IP, and only ports can be mapped')
  }
  for (const port of item.service.ports) {
    const protocol = protocolOf(port.protocol)
    if (!protocol || !isPort(port.port)) {
      complain(`port "${port.name}" has no usable protocol or number`)
      continue
    }
    const serving = endpointsOfPort(item, port)
    for (const family of context.families) {
      if (!isReached(item.service, port, family)) continue
      frontends.push(...frontendsOfPort({ item, port, protocol, family, context, complain }, serving))
    }
  }
  return withoutRepeats(frontends)
}

/** Two ports of a service with one number and protocol, or an IP that is written twice: the first counts. */
function withoutRepeats(frontends: Frontend[]): Frontend[] {
  if (frontends.length < 2) return frontends
  const seen = new Set<string>()
  return frontends.filter(({ family, key }) => {
    const id = `${family} ${key}`
    return !seen.has(id) && seen.add(id)
  })
}

function frontendsOfPort(of: PortInFamily, serving: readonly PortEndpoint[]): Frontend[] {
  const { service } = of.item
  const { protocol, port, context } = of
  const answers = answersOf(of, serving)
  const frontends: Frontend[] = []
  const cluster = addressesOf(service.ips?.clusterIps, of)
  for (const address of cluster) {
    frontends.push(frontend('cluster', serviceKey(address, protocol, port.port), answers))
  }
  const loadBalancer = addressesOf(service.ips?.loadBalancerIps, of)
  const external = context.settings.externalIps ? addressesOf(service.ips?.externalIps, of) : []
  for (const address of new Set([...external, ...loadBalancer])) {
    if (cluster.includes(address)) continue
    const sources = allowedSources(of, address, loadBalancer.includes(address))
    frontends.push(frontend('external', serviceKey(address, protocol, port.port), answers, sources))
  }
  if (isPort(port.nodePort) && isServedBy(service, of.family)) {
    frontends.push(frontend('nodePort', nodePortKey(protocol, port.nodePort), answers))
  }
  return frontends
}

function frontend(kind: Frontend['kind'], key: string, answers: Answers, sources?: readonly AddressRange[]): Frontend {
  return {
    kind,
    family: answers.family,
    protocol: answers.protocol,
    key,
    local: kind !== 'cluster' && answers.local,
    endpoints: kind === 'cluster' ? answers.internal : answers.cluster,
    localEndpoints: answers.external,
    servedSomewhere: answers.servedSomewhere,
    endpointsHere: answers.here,
    sources,
    affinitySeconds: answers.affinitySeconds,
  }
}

/** Most services are reached in one family only, and nothing needs to be worked out for the other. */
function isReached({ ips }: localv1.Service, { nodePort }: localv1.PortMapping, family: Family): boolean {
  if (nodePort > 0) return true
  const of = family === 'ip' ? 'v4' : 'v6'
  return [ips?.clusterIps, ips?.externalIps, ips?.loadBalancerIps].some(
    (set) => set !== undefined && set[of].length > 0,
  )
}

/** A node port exists in the families of the service's cluster IPs; one that has none, in all. */
function isServedBy({ ips }: localv1.Service, family: Family): boolean {
  const { v4 = [], v6 = [] } = ips?.clusterIps ?? {}
  return v4.length + v6.length === 0 || (family === 'ip' ? v4 : v6).length > 0
}

function addressesOf(set: localv1.IPSet | undefined, { family, complain }: PortInFamily): string[] {
  return ((family === 'ip' ? set?.v4 : set?.v6) ?? []).flatMap((text) => {
    const address: Address | undefined = parseAddress(text)
    if (address?.family === family) return address.bytes
    complain(`"${text}" is no ${family === 'ip' ? 'IPv4' : 'IPv6'} address`)
    return []
  })
}

/**
 * The source ranges for an address, of all filters that are for it; undefined where no filter restricts this family. Ranges of
 * the other family only do not, as in kube-proxy. A filter without a range does, and so does a range that cannot be read:
 * whoever wrote it wanted a restriction.
 */
function allowedSources(
  { item: { service }, family, context, complain }: PortInFamily,
  address: string,
  isLoadBalancerIp: boolean,
): readonly AddressRange[] | undefined {
  const ranges: AddressRange[] = []
  let isRestricted = false
  for (const { targetIps, sourceRanges } of service.ipFilters) {
    const targets = [...(targetIps?.v4 ?? []), ...(targetIps?.v6 ?? [])]
    const applies = targets.length === 0 ? isLoadBalancerIp : targets.some((ip) => parseAddress(ip)?.bytes === address)
    if (!applies) continue
    if (sourceRanges.length === 0) isRestricted = true
    for (const text of sourceRanges) {
      const range = parseCidr(text)
      if (!range) complain(`source range "${text}" is no CIDR and lets nobody in`)
      if (range?.family === family) ranges.push(range)
      if (!range || range.family === family) isRestricted = true
    }
  }
  if (!isRestricted) return undefined
  // Where the load balancer's address is an address of the node as well, the node's own packets carry it as their source.
  if (context.nodeAddresses.some((own) => ranges.some((range) => contains(range, own)))) {
    ranges.push({ family, first: address, last: address })
  }
  return mergeRanges(ranges)
}
