import { type Family, hostPort, parseIp } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import type { Frontend, FrontendEndpoint } from '@kpng/dataplane'
import {
  balancerFlags,
  distribution,
  type HcnLoadBalancer,
  type HnsFeatures,
  type LoadBalancerSettings,
  mappingFlags,
  type PortMapping,
  protocolNumbers,
} from './hcn.js'
import type { RemoteSubnets } from './remote-endpoints.js'

// Which load balancers a frontend needs, with the flags of kube-proxy 1.36:
//
// frontend         address:port         endpoints                                   flags             flags of the port mapping
// cluster IP       its own              all; internalTrafficPolicy Local: local     DSR if enableDsr  none
// node port        none:node port       all; preserve or Local: local               DSR if Local      local routed VIP, external
// external IP      its own              all; Local: local                           DSR if Local      external
// load-balancer IP its own              all; preserve or Local: local               DSR if either     external; preserve: mux, keep destination
// health check     load-balancer IP     the root endpoint of the node               none              preserve: mux, keep destination
//
// "Local" is externalTrafficPolicy, "preserve" the annotation. HNS older than DSR (direct server return) ignores both.

/** The annotation that asks for the destination address to be kept. */
export const preserveDestinationAnnotation = 'preserve-destination'

/** What balancers need to know of a Service beside its frontends. */
export interface ServiceTraits {
  readonly preserveDestination: boolean
  /** 0: none. */
  readonly healthCheckNodePort: number
}

/** What all balancers of a node share. */
export interface BalancerNode {
  readonly features: HnsFeatures
  /** Whether answers to cluster IPs go to the client directly. */
  readonly enableDsr: boolean
  /** If load balancers ask for the health of this node at the load-balancer IP: the port of /healthz. */
  readonly healthCheckPort?: number
  /** Overlay networks only. */
  readonly overlay?: Overlay
}

export interface Overlay {
  /** The source address that endpoints of the network see. */
  readonly sourceVip: string
  /** The node's address. Endpoints outside the network see it. */
  readonly nodeIp: string
  readonly subnets: RemoteSubnets
}

/** A load balancer before its endpoints have IDs. */
export interface Balancer {
  /** HNS allows one load balancer per key: see `keyOf`. */
  readonly key: string
  /** For people: `10.96.0.10:80/tcp`, `IPv4 node port 30080/tcp`. */
  readonly name: string
  /** `namespace/name` */
  readonly service: string
  /** `root`: the endpoint of the node itself. */
  readonly endpoints: readonly FrontendEndpoint[] | 'root'
  readonly settings: Omit<LoadBalancerSettings, 'HostComputeEndpoints'>
}

export interface FrontendBalancers {
  readonly balancers: readonly Balancer[]
  /** What of the frontend HNS cannot do, as sentences. The rest is served. */
  readonly problems: readonly string[]
}

export function balancersOf(frontend: Frontend, traits: ServiceTraits, node: BalancerNode): FrontendBalancers {
  const { kind, family, address, protocol, port, service } = frontend
  if (protocol === 'any') {
    return { balancers: [], problems: [`${frontend.id}: HNS cannot serve all ports of an address`] }
  }
  const problems = problemsOf(frontend, node.features)
  const plan = planOf(frontend, traits, node)
  const { endpoints, targetPort } = withOnePort(plan.endpoints, (sentence) =>
    problems.push(`${frontend.id}: ${sentence}`),
  )
  const hasAffinity = frontend.sessionAffinitySeconds !== undefined && node.features.sessionAffinity
  const mapping = {
    ...portMapping(protocol, targetPort, port, plan.mapping),
    ...(hasAffinity && { DistributionType: distribution.sourceIp }),
  }
  const ipv6 = family === 'IPv6' ? balancerFlags.ipv6 : 0
  const flags = (plan.dsr ? balancerFlags.directServerReturn : 0) | ipv6
  const settings = settingsOf(address, mapping, flags, sourceVip(endpoints, node.overlay))
  const balancers: Balancer[] = [{ key: keyOf(settings) as string, name: frontend.id, service, endpoints, settings }]
  if (kind === 'loadBalancerIP' && node.healthCheckPort !== undefined && endpoints.length > 0) {
    const checked = traits.healthCheckNodePort || node.healthCheckPort
    const check = settingsOf(
      address,
      portMapping('tcp', checked, checked, preserveFlags(traits, node)),
      ipv6,
      node.overlay?.sourceVip,
    )
    const name = `health check ${hostPort(address, checked)}/tcp`
    balancers.push({ key: keyOf(check) as string, name, service, endpoints: 'root', settings: check })
  }
  return { balancers, problems }
}

interface Plan {
  readonly endpoints: readonly FrontendEndpoint[]
  readonly dsr: boolean
  readonly mapping: number
}

function planOf(frontend: Frontend, traits: ServiceTraits, node: BalancerNode): Plan {
  const { kind, inside, outside } = frontend
  if (kind === 'clusterIP') return { endpoints: inside.endpoints, dsr: node.enableDsr, mapping: 0 }
  const { directServerReturn } = node.features
  const local = directServerReturn && outside !== inside
  const preserve = directServerReturn && traits.preserveDestination
  const all = (local ? outside : inside).endpoints
  const onNode = preserve ? all.filter(({ isLocal }) => isLocal) : all
  const external = mappingFlags.vipExternalIp
  switch (kind) {
    case 'nodePort':
      return { endpoints: onNode, dsr: local, mapping: mappingFlags.localRoutedVip | external }
    case 'externalIP':
      return { endpoints: all, dsr: local, mapping: external }
    case 'loadBalancerIP':
      return { endpoints: onNode, dsr: local || preserve, mapping: external | preserveFlags(traits, node) }
  }
}

const preserveFlags = (traits: ServiceTraits, { features }: BalancerNode): number =>
  traits.preserveDestination && features.directServerReturn ? mappingFlags.useMux | mappingFlags.preserveDestination : 0

const portMapping = (protocol: Protocol, internal: number, external: number, flags: number): PortMapping => ({
  Protocol: protocolNumbers[protocol],
  InternalPort: internal,
  ExternalPort: external,
  ...(flags !== 0 && { Flags: flags }),
})

const settingsOf = (address: string, mapping: PortMapping, flags: number, sourceVip: string | undefined) => ({
  ...(sourceVip !== undefined && { SourceVIP: sourceVip }),
  ...(address !== '' && { FrontendVIPs: [address] }),
  PortMappings: [mapping],
  Flags: flags,
})

/** An endpoint outside the network cannot answer the source VIP. */
function sourceVip(endpoints: readonly FrontendEndpoint[], overlay: Overlay | undefined): string | undefined {
  if (!overlay) return undefined
  const isOutside = endpoints.some(({ ip, isLocal }) => !isLocal && overlay.subnets.isOutside(ip))
  return isOutside ? overlay.nodeIp : overlay.sourceVip
}

/** A load balancer has one target port. Of endpoints with different ones, the largest group is served. */
function withOnePort(endpoints: readonly FrontendEndpoint[], report: (sentence: string) => void) {
  const groups = new Map<number, FrontendEndpoint[]>()
  for (const endpoint of endpoints) {
    const group = groups.get(endpoint.port)
    if (group) group.push(endpoint)
    else groups.set(endpoint.port, [endpoint])
  }
  const [largest, ...others] = [...groups].sort(([a, one], [b, other]) => other.length - one.length || a - b)
  const left = others.flatMap(([, group]) => group)
  if (left.length > 0) {
    const names = left.map(({ ip, port }) => `${ip} (port ${port})`).join(', ')
    report(`HNS needs one target port; port ${largest?.[0]} is served, and these endpoints are not: ${names}`)
  }
  return { endpoints: largest?.[1] ?? [], targetPort: largest?.[0] ?? 0 }
}

function problemsOf(frontend: Frontend, features: HnsFeatures): string[] {
  const { id, kind, inside, outside, sessionAffinitySeconds } = frontend
  const lacks = (what: string) => `${id}: this version of HNS does not support ${what}`
  return [
    ...(sessionAffinitySeconds !== undefined && !features.sessionAffinity ? [lacks('sessionAffinity ClientIP')] : []),
    ...(kind !== 'clusterIP' && outside !== inside && !features.directServerReturn
      ? [lacks('externalTrafficPolicy Local')]
      : []),
  ]
}

/** What HNS tells load balancers apart by: `IPv4 10.96.0.10 6 80`. Undefined: it has no port mapping, as a failed creation leaves it. */
export function keyOf({ Flags = 0, FrontendVIPs, PortMappings }: Partial<HcnLoadBalancer>): string | undefined {
  const mapping = PortMappings?.[0]
  if (!mapping) return undefined
  const family: Family = Flags & balancerFlags.ipv6 ? 'IPv6' : 'IPv4'
  const vip = FrontendVIPs?.[0]
  return `${family} ${vip ? (parseIp(vip)?.text ?? vip) : '*'} ${mapping.Protocol} ${mapping.ExternalPort}`
}

/** Two load balancers with equal texts are the same to clients. HNS writes IDs in upper or lower case, and leaves out what is 0. */
export function contentOf(balancer: Partial<HcnLoadBalancer>): string {
  const { HostComputeEndpoints = [], SourceVIP, PortMappings = [], Flags } = balancer
  const mappings = PortMappings.map((mapping) => [
    mapping.InternalPort,
    mapping.DistributionType ?? 0,
    mapping.Flags ?? 0,
  ])
  const ids = HostComputeEndpoints.map((id) => id.toLowerCase()).sort()
  return JSON.stringify([keyOf(balancer), Flags ?? 0, SourceVIP ?? '', mappings, ids])
}
