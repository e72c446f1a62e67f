import { endpoint, ips, type TestService, tcp, udp } from '@kpng/client/testing'
import type { WinkernelOptions } from '../options.js'

// One Service of each kind that this backend tells apart.

const local = { local: true }
const pods = [endpoint('10.244.1.5', local), endpoint('10.244.1.6', local), endpoint('10.244.2.7')]
/** As the core sends them under externalTrafficPolicy Local. */
const externalLocal = [endpoint('10.244.1.5', local), endpoint('10.244.2.7', { scopes: ['internal', 'cluster'] })]
const clusterIps = ips('10.96.0.10')
const nodePort = [tcp(80, { nodePort: 30080 })]
const web = { name: 'web', ips: { clusterIps }, endpoints: pods }
const preserve = { annotations: { 'preserve-destination': 'true' } }
const balanced = { ...web, type: 'LoadBalancer', ips: { clusterIps, loadBalancerIps: ips('203.0.113.9') } }
const affinity = { sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 600 } } } as const

export interface Kind {
  readonly services: readonly TestService[]
  readonly options?: WinkernelOptions
}

const kind = (services: TestService | TestService[], options?: WinkernelOptions): Kind => ({
  services: [services].flat(),
  ...(options && { options }),
})

const healthChecks = { forwardHealthCheckVip: true, rootEndpointName: 'cbr0-root' }

export const kinds: Readonly<Record<string, Kind>> = {
  'cluster IP': kind(web),
  'cluster IP with DSR': kind(web, { enableDsr: true }),
  'cluster IP, UDP': kind({ ...web, ports: [udp(53)] }),
  'two ports': kind({ ...web, ports: [tcp(80), tcp(443, { targetPort: 8443 })] }),
  'internal Local': kind({
    ...web,
    internalTrafficToLocal: true,
    endpoints: [endpoint('10.244.1.5', local), endpoint('10.244.2.7', { scopes: ['external', 'cluster'] })],
  }),
  'internal Local without local endpoints': kind({
    ...web,
    internalTrafficToLocal: true,
    endpoints: [endpoint('10.244.2.7', { scopes: ['external', 'cluster'] })],
  }),
  'node port': kind({ ...web, ports: nodePort }),
  'node port, external Local': kind({
    ...web,
    ports: nodePort,
    externalTrafficToLocal: true,
    endpoints: externalLocal,
  }),
  'node port, preserve destination': kind({ ...web, ...preserve, ports: nodePort }),
  'external IP': kind({ ...web, ips: { clusterIps, externalIps: ips('198.51.100.7') } }),
  'external IP, external Local': kind({
    ...web,
    ips: { clusterIps, externalIps: ips('198.51.100.7') },
    externalTrafficToLocal: true,
    endpoints: externalLocal,
  }),
  'load balancer': kind({ ...balanced, ports: nodePort }),
  'load balancer, external Local, health check': kind(
    {
      ...balanced,
      ports: nodePort,
      externalTrafficToLocal: true,
      healthCheckNodePort: 32_000,
      endpoints: externalLocal,
    },
    healthChecks,
  ),
  'load balancer, preserve destination, health check': kind({ ...balanced, ...preserve }, healthChecks),
  'session affinity': kind({ ...web, ...affinity }),
  'only terminating endpoints': kind({
    ...balanced,
    ports: nodePort,
    endpoints: [endpoint('10.244.2.7'), endpoint('10.244.2.8', { scopes: [] })],
  }),
  'endpoints outside the cluster': kind({ ...web, endpoints: [endpoint('192.0.2.33')] }),
  'endpoints on another node': kind({ ...web, endpoints: [endpoint('10.0.0.5'), endpoint('10.244.1.5', local)] }),
  'dual stack': kind({
    ...web,
    ips: { clusterIps: ips('10.96.0.10', 'fd00:96::10') },
    ports: nodePort,
    endpoints: [endpoint('10.244.1.5 fd00:244:1::5', local), endpoint('10.244.2.7 fd00:244:2::7')],
  }),
  'no endpoints': kind({ ...web, ports: nodePort, endpoints: [] }),
}
