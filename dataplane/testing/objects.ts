import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import type { Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import { item, type TestService } from '@kpng/client/testing'

// Short ways to write views, for tests of the data plane and of the backends that build on it.

export { endpoint, ips, item, type TestService, tcp, udp } from '@kpng/client/testing'

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
