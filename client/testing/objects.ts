import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type globalv1, localv1 } from '@kpng/api'
import type { ServiceEndpoints } from '../backend.js'

// Short ways to write Services and endpoints in tests of backends.

type ServiceInit = MessageInitShape<typeof localv1.ServiceSchema>
type PortInit = Exclude<MessageInitShape<typeof localv1.PortMappingSchema>, localv1.PortMapping>

/** A Service as a test writes it: any of its fields, its name, and its endpoints. */
export type TestService = Omit<Exclude<ServiceInit, localv1.Service>, '$typeName' | '$unknown' | 'name'> & {
  /** The name of the Service. Its namespace is `default`, unless given. */
  readonly name: string
  /** The endpoints that the node under test should use. Default: none. */
  readonly endpoints?: readonly localv1.Endpoint[]
}

/** A node as a test writes it: any of its fields but its name, which FakeCore has. */
export type TestNode = Omit<
  Exclude<MessageInitShape<typeof globalv1.NodeSchema>, globalv1.Node>,
  '$typeName' | '$unknown' | 'name'
>

const ofFamily = (ips: readonly string[]) => ({
  v4: ips.filter((ip) => !ip.includes(':')),
  v6: ips.filter((ip) => ip.includes(':')),
})

/** Addresses by family, for `clusterIps`, `externalIps` and `loadBalancerIps`: `ips('10.96.0.1', 'fd00:96::1')`. */
export const ips = (...addresses: string[]) => ofFamily(addresses)

/** A TCP port called `tcp-<number>`, with target port 8080. */
export const tcp = (port: number, init: PortInit = {}) => ({
  name: `tcp-${port}`,
  protocol: localv1.Protocol.TCP,
  port,
  targetPort: 8080,
  ...init,
})

/** A UDP port called `udp-<number>`, with target port 8080. */
export const udp = (port: number, init: PortInit = {}) => ({
  ...tcp(port),
  name: `udp-${port}`,
  protocol: localv1.Protocol.UDP,
  ...init,
})

/** The fields of `EndpointScopes`. */
export type Scope = 'internal' | 'external' | 'cluster'

/**
 * An endpoint.
 * @param addresses one or more, with spaces: `10.244.1.5 fd00:244::5`
 * @param options `scopes`: the traffic it may be used for, all by default; `local`: it is on this node, false by default
 */
export const endpoint = (
  addresses: string,
  { scopes = ['internal', 'external', 'cluster'], local = false }: { scopes?: readonly Scope[]; local?: boolean } = {},
): localv1.Endpoint =>
  create(localv1.EndpointSchema, {
    ips: ofFamily(addresses.split(' ')),
    local,
    scopes: Object.fromEntries(scopes.map((scope) => [scope, true])),
  })

/** A Service and its endpoints as a view holds them. Type ClusterIP and one port, TCP 80, unless given. */
export function item({ endpoints = [], ...init }: TestService): ServiceEndpoints {
  const service = create(localv1.ServiceSchema, {
    namespace: 'default',
    type: 'ClusterIP',
    ports: [tcp(80)],
    ...init,
  } as ServiceInit)
  return { service, endpoints: [...endpoints] }
}
