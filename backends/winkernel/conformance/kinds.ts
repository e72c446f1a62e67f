import { endpoint, ips, type TestService, tcp, udp } from '@kpng/client/testing'
import type { WinkernelOptions } from '../options.js'

/** The addresses of one kind. */
export interface KindAddresses {
  /** The name of the Service. */
  readonly name: string
  readonly clusterIp: string
  readonly clusterIpV6: string
  readonly externalIp: string
  readonly loadBalancerIp: string
  readonly nodePort: number
  readonly healthCheckNodePort: number
}

/** Endpoints that all kinds share. */
export interface KindPods {
  /** Pods on this node. The first has an IPv6 address too, if it is known. */
  readonly local: readonly [string, string]
  readonly localV6?: string
  /** Pods on other nodes. */
  readonly remote: readonly [string, string]
  readonly remoteV6: string
  /** Another node itself. */
  readonly otherNode: string
  /** An address outside the cluster. */
  readonly outside: string
  /** The name of the HNS endpoint that health checks go to. */
  readonly rootEndpointName: string
}

/** A Service of one kind, and the options of the backend with which it is what its name says. */
export interface Kind {
  readonly service: TestService
  readonly options?: WinkernelOptions
}

/** One Service of each kind that this backend tells apart. */
export function kindsOf(addresses: KindAddresses, pods: KindPods): Readonly<Record<string, Kind>> {
  const { name, clusterIp, nodePort } = addresses
  const local = { local: true }
  const [a, b] = pods.local
  const [c, d] = pods.remote
  /** As the core sends them under a policy Local: the pod on another node is not for this traffic. */
  const localFor = (policy: 'internal' | 'external') => [
    endpoint(a, local),
    endpoint(c, { scopes: [policy === 'internal' ? 'external' : 'internal', 'cluster'] }),
  ]
  const clusterIps = ips(clusterIp)
  const ports = [tcp(80, { nodePort })]
  const web = { name, ips: { clusterIps }, endpoints: [endpoint(a, local), endpoint(b, local), endpoint(c)] }
  const external = { ...web, ips: { clusterIps, externalIps: ips(addresses.externalIp) } }
  const loadBalancerIps = ips(addresses.loadBalancerIp)
  const balanced = { ...web, type: 'LoadBalancer', ips: { clusterIps, loadBalancerIps } }
  const externalLocal = { externalTrafficToLocal: true, endpoints: localFor('external') }
  const preserve = { annotations: { 'preserve-destination': 'true' } }
  const affinity = { sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 600 } } } as const
  const healthChecks = { forwardHealthCheckVip: true, rootEndpointName: pods.rootEndpointName }
  const { healthCheckNodePort } = addresses
  const both = (v4: string, v6: string | undefined) => (v6 === undefined ? v4 : `${v4} ${v6}`)
  return {
    'cluster IP': { service: web },
    'cluster IP with DSR': { service: web, options: { enableDsr: true } },
    'cluster IP, UDP': { service: { ...web, ports: [udp(53)] } },
    'two ports': { service: { ...web, ports: [tcp(80), tcp(443, { targetPort: 8443 })] } },
    'internal Local': { service: { ...web, internalTrafficToLocal: true, endpoints: localFor('internal') } },
    'internal Local without local endpoints': {
      service: { ...web, internalTrafficToLocal: true, endpoints: localFor('internal').slice(1) },
    },
    'node port': { service: { ...web, ports } },
    'node port, external Local': { service: { ...web, ports, ...externalLocal } },
    'node port, preserve destination': { service: { ...web, ...preserve, ports } },
    'external IP': { service: external },
    'external IP, external Local': { service: { ...external, ...externalLocal } },
    'load balancer': { service: { ...balanced, ports } },
    'load balancer, external Local, health check': {
      service: { ...balanced, ports, ...externalLocal, healthCheckNodePort },
      options: healthChecks,
    },
    'load balancer, preserve destination, health check': {
      service: { ...balanced, ...preserve },
      options: healthChecks,
    },
    'session affinity': { service: { ...web, ...affinity } },
    'only terminating endpoints': {
      service: { ...balanced, ports, endpoints: [endpoint(c), endpoint(d, { scopes: [] })] },
    },
    'endpoints outside the cluster': { service: { ...web, endpoints: [endpoint(pods.outside)] } },
    'endpoints on another node': { service: { ...web, endpoints: [endpoint(pods.otherNode), endpoint(a, local)] } },
    'dual stack': {
      service: {
        ...web,
        ...{ ips: { clusterIps: ips(clusterIp, addresses.clusterIpV6) }, ports },
        endpoints: [endpoint(both(a, pods.localV6), local), endpoint(both(c, pods.remoteV6))],
      },
    },
    'no endpoints': { service: { ...web, ports, endpoints: [] } },
  }
}
