import { type Family, families, zoneLabel } from '@kpng/api'
import {
  addressOf,
  clusterIp,
  externalIp,
  familySuffix,
  healthCheckNodePort,
  ipsOf,
  loadBalancerIp,
  nodePort,
  podCidr,
  type Server,
  serviceCidr,
  zoneOf,
} from '../addresses.js'
import type { KubernetesObject } from './case.js'

export const namespace = 'kpng-conformance'

/** On a Service: only the proxy of this name serves it. */
export const serviceProxyNameLabel = 'service.kubernetes.io/service-proxy-name'
/** On an EndpointSlice: the EndpointSlice controller marks the slices of headless Services. */
export const headlessLabel = 'service.kubernetes.io/headless'
/** The name of the specialised proxy that runs beside the proxy under test. */
export const serviceProxyName = 'conformance'

/** A server on each node. */
export const both: readonly Server[] = ['a1', 'b1']

export interface ServicePort {
  readonly name: string
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly port: number
  readonly targetPort: number | string
  readonly nodePort?: number
}

export const tcpPort = (port: number, more: Partial<ServicePort> = {}): ServicePort => ({
  name: '',
  protocol: 'TCP',
  port,
  targetPort: 8080,
  ...more,
})

export const udpPort = (port: number, more: Partial<ServicePort> = {}): ServicePort => ({
  ...tcpPort(port, more),
  protocol: 'UDP',
})

/** Port 80 of TCP and UDP. */
export const tcpAndUdp = (more: Partial<ServicePort> = {}): ServicePort[] => [
  tcpPort(80, { name: 'tcp', ...more }),
  udpPort(80, { name: 'udp', ...more }),
]

export interface ServiceOptions {
  readonly ports: readonly ServicePort[]
  readonly families?: readonly Family[]
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
  /** More of `spec`. */
  readonly spec?: Readonly<Record<string, unknown>>
  /** `status.loadBalancer.ingress`. */
  readonly ingress?: readonly Readonly<Record<string, unknown>>[]
}

/** A Service whose cluster IPs follow from its number. */
export function service(name: string, number: number, options: ServiceOptions): KubernetesObject {
  const { ports, families: served = families, labels, annotations, spec = {}, ingress } = options
  const clusterIps = served.map((family) => clusterIp(number)[family])
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, ...(labels && { labels }), ...(annotations && { annotations }) },
    spec: {
      type: 'ClusterIP',
      clusterIP: clusterIps[0],
      clusterIPs: clusterIps,
      ipFamilies: served,
      ipFamilyPolicy: served.length === 2 ? 'RequireDualStack' : 'SingleStack',
      ports: ports.map(({ name: portName, ...port }) => (portName === '' ? port : { name: portName, ...port })),
      ...nothingToAllocate(number, ports, spec),
      ...spec,
    },
    ...(ingress && { status: { loadBalancer: { ingress } } }),
  }
}

/** A node port that an API server chooses itself may be one that a later case asks for: it is given nothing to choose. */
function nothingToAllocate(
  number: number,
  ports: readonly ServicePort[],
  { type, externalTrafficPolicy }: NonNullable<ServiceOptions['spec']>,
): Readonly<Record<string, unknown>> {
  if (type !== 'LoadBalancer') return {}
  return {
    ...(ports.every(({ nodePort }) => nodePort === undefined) && { allocateLoadBalancerNodePorts: false }),
    ...(externalTrafficPolicy === 'Local' && { healthCheckNodePort: healthCheckNodePort(number) }),
  }
}

export interface EndpointOptions {
  readonly server: Server
  /** Default: an endpoint without conditions, which counts as ready. */
  readonly conditions?: Readonly<{ ready?: boolean; serving?: boolean; terminating?: boolean }>
  readonly forZones?: readonly string[]
  readonly forNodes?: readonly string[]
}

export type EndpointList = readonly (Server | EndpointOptions)[]

const nodeNameOf = (server: Server): 'node-a' | 'node-b' => (server.startsWith('b') ? 'node-b' : 'node-a')

interface SliceOptions {
  /** Service ports by name, with the number that the endpoints listen on. Default: the only port of a Service, TCP. */
  readonly ports?: readonly Readonly<{ name: string; protocol: string; port?: number | null }>[]
  readonly families?: readonly Family[]
  /** Tells slices of one Service apart. */
  readonly suffix?: string
  /** More labels. Default: none beyond those that a slice made by hand needs. */
  readonly labels?: Record<string, string>
}

/** A slice of each family for the same pods. */
export function slices(serviceName: string, endpoints: EndpointList, options: SliceOptions = {}): KubernetesObject[] {
  const { ports = slicePorts([tcpPort(80)]), families: served = families, suffix = '', labels = {} } = options
  return served.map((family) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${serviceName}${suffix}-${familySuffix[family]}`,
      namespace,
      labels: {
        'kubernetes.io/service-name': serviceName,
        'endpointslice.kubernetes.io/managed-by': 'conformance.kpng.sigs.k8s.io',
        ...labels,
      },
    },
    addressType: family,
    ports,
    endpoints: endpoints.map((endpoint) => endpointOf(endpoint, family)),
  }))
}

function endpointOf(given: Server | EndpointOptions, family: Family): Record<string, unknown> {
  const { server, conditions, forZones, forNodes }: EndpointOptions =
    typeof given === 'string' ? { server: given, conditions: { ready: true } } : given
  const nodeName = nodeNameOf(server)
  const hints = {
    ...(forZones && { forZones: forZones.map((name) => ({ name })) }),
    ...(forNodes && { forNodes: forNodes.map((name) => ({ name })) }),
  }
  return {
    addresses: [addressOf[server][family]],
    ...(conditions && { conditions }),
    ...((forZones || forNodes) && { hints }),
    nodeName,
    zone: zoneOf[nodeName],
  }
}

/** A Service and slices that serve all its ports. */
export function served(
  name: string,
  number: number,
  endpoints: EndpointList,
  options: ServiceOptions,
): KubernetesObject[] {
  return [service(name, number, options), ...slices(name, endpoints, { ports: slicePorts(options.ports) })]
}

/** A load balancer, with node ports. */
export const balanced = (
  name: string,
  number: number,
  endpoints: EndpointList,
  { spec, ...more }: Partial<ServiceOptions> = {},
): KubernetesObject[] =>
  served(name, number, endpoints, {
    ports: tcpAndUdp({ nodePort: nodePort(number) }),
    ingress: ipsOf(loadBalancerIp(number)).map((ip) => ({ ip })),
    ...more,
    spec: { type: 'LoadBalancer', ...spec },
  })

/** A Service with every kind of address: a load balancer with node ports and external IPs. */
export const exposed = (
  name: string,
  number: number,
  endpoints: EndpointList,
  { spec, ...more }: Partial<ServiceOptions> = {},
): KubernetesObject[] =>
  balanced(name, number, endpoints, { ...more, spec: { externalIPs: ipsOf(externalIp(number)), ...spec } })

/** The ports of slices that serve all ports of a Service. */
export const slicePorts = (ports: readonly ServicePort[]): NonNullable<SliceOptions['ports']> =>
  ports.map(({ name, protocol, targetPort }) => ({ name, protocol, port: Number(targetPort) }))

const node = (name: 'node-a' | 'node-b'): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'kubernetes.io/hostname': name, [zoneLabel]: zoneOf[name] } },
  spec: { podCIDR: podCidr[name].IPv4, podCIDRs: ipsOf(podCidr[name]) },
  status: {
    addresses: [
      ...ipsOf(addressOf[name]).map((address) => ({ type: 'InternalIP', address })),
      { type: 'Hostname', address: name },
    ],
    conditions: [{ type: 'Ready', status: 'True' }],
  },
})

/** What the cluster has whatever the cases are. */
export const clusterObjects: readonly KubernetesObject[] = [
  node('node-a'),
  node('node-b'),
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: namespace },
    spec: { cidrs: ipsOf(serviceCidr) },
  },
]
