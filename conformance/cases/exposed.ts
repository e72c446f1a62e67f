import { families } from '@kpng/api'
import { externalIp, loadBalancerIp, nodePort, type Server } from '../addresses.js'
import type { KubernetesObject } from './case.js'
import { type EndpointOptions, type ServiceOptions, served, tcpPort, udpPort } from './objects.js'

/** Port 80 of TCP and UDP, each with the node port of that number. */
export const tcpAndUdp = (number: number): ServiceOptions['ports'] => [
  tcpPort(80, { name: 'tcp', nodePort: nodePort(number) }),
  udpPort(80, { name: 'udp', nodePort: nodePort(number) }),
]

/** A Service with every kind of address: a load balancer with a node port and an external IP. */
export const exposed = (
  name: string,
  number: number,
  endpoints: readonly (Server | EndpointOptions)[],
  { spec, ...more }: Partial<ServiceOptions> = {},
): KubernetesObject[] =>
  served(name, number, endpoints, {
    ports: tcpAndUdp(number),
    ingress: families.map((family) => ({ ip: loadBalancerIp(number)[family] })),
    ...more,
    spec: { type: 'LoadBalancer', externalIPs: families.map((family) => externalIp(number)[family]), ...spec },
  })
