import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import type { Changes, NodeView, ServiceEndpoints } from '@kpng/client'

// Short ways to write views, for tests of the data plane and of the backends that build on it.

type ServiceInit = MessageInitShape<typeof localv1.ServiceSchema>

/** The fields of a service as they may be given, its name, and its endpoints. */
export type TestService = Omit<Exclude<ServiceInit, localv1.Service>, '$typeName' | '$unknown' | 'name'> & {
  readonly name: string
  readonly endpoints?: readonly localv1.Endpoint[]
}

const ofFamily = (ips: readonly string[]) => ({
  v4: ips.filter((ip) => !ip.includes(':')),
  v6: ips.filter((ip) => ip.includes(':')),
})

export const ips = (...addresses: string[]) => ofFamily(addresses)

export const tcp = (port: number, init: MessageInitShape<typeof localv1.PortMappingSchema> = {}) => ({
  name: `tcp-${port}`,
  protocol: localv1.Protocol.TCP,
  port,
  targetPort: 8080,
  ...init,
})

export const udp = (port: number, init: MessageInitShape<typeof localv1.PortMappingSchema> = {}) => ({
  ...tcp(port, init),
  name: `udp-${port}`,
  protocol: localv1.Protocol.UDP,
})

type Scope = 'internal' | 'external' | 'cluster'

/** An endpoint: its addresses, and for whom it may be used (all, unless said). `local`: it is on this node. */
export const endpoint = (
  addresses: string,
  { scopes = ['internal', 'external', 'cluster'], local = false }: { scopes?: readonly Scope[]; local?: boolean } = {},
): localv1.Endpoint =>
  create(localv1.EndpointSchema, {
    ips: ofFamily(addresses.split(' ')),
    local,
    scopes: Object.fromEntries(scopes.map((scope) => [scope, true])),
  })

export function item({ endpoints = [], ...init }: TestService): ServiceEndpoints {
  const service = create(localv1.ServiceSchema, {
    namespace: 'default',
    type: 'ClusterIP',
    ports: [tcp(80)],
    ...init,
  } as ServiceInit)
  return { service, endpoints: [...endpoints] }
}

export const thisNode = (init: MessageInitShape<typeof globalv1.NodeSchema> = {}) =>
  create(globalv1.NodeSchema, { name: 'node-a', addresses: ['172.30.0.1', 'fd00:30::1'], ...init })

export interface TestView extends NodeView {
  readonly services: Map<string, ServiceEndpoints>
  serviceCidrs: Map<string, localv1.ServiceCIDR>
  node: globalv1.Node | undefined
}

export function view(services: readonly TestService[], cidrs: readonly string[] = []): TestView {
  return {
    nodeName: 'node-a',
    node: thisNode(),
    services: new Map(services.map((service) => [`default/${service.name}`, item(service)])),
    serviceCidrs: new Map(
      cidrs.length > 0
        ? [['kubernetes', create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: [...cidrs] })]]
        : [],
    ),
  }
}

export const fullSync: Changes = { full: true, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

/** Changes a service of a view in place, or takes it away, and says what changed. */
export function change(of: TestView, name: string, after: TestService | undefined): Changes {
  const path = `default/${name}`
  const before = of.services.get(path)
  const now = after && item(after)
  if (now) of.services.set(path, now)
  else of.services.delete(path)
  return { ...fullSync, full: false, services: new Map([[path, { before, after: now }]]) }
}
