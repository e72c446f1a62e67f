import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { type globalv1, localv1 } from '@kpng/api'
import type { Changes, NodeView, ServiceChange, ServiceEndpoints, SyncReport } from '@kpng/client'

// Short ways to write what a node sees, and how it changes.

type ServiceInit = MessageInitShape<typeof localv1.ServiceSchema>
type EndpointInit = MessageInitShape<typeof localv1.EndpointSchema>

const usual: ServiceInit = {
  namespace: 'default',
  type: 'LoadBalancer',
  ips: { clusterIps: { v4: ['10.96.0.10'] } },
  ports: [{ name: 'http', protocol: localv1.Protocol.TCP, port: 80, targetPort: 8080, servedFamilies: { v4: true } }],
}

export const serviceWith = (init: ServiceInit, endpoints: readonly EndpointInit[] = []): ServiceEndpoints => ({
  service: create(localv1.ServiceSchema, { ...usual, ...init } as ServiceInit),
  endpoints: endpoints.map((endpoint) => create(localv1.EndpointSchema, endpoint)),
})

/** An endpoint that may be used for everything. */
export const endpointAt = (ip: string, init: EndpointInit = {}): EndpointInit =>
  ({
    ips: ip.includes(':') ? { v6: [ip] } : { v4: [ip] },
    scopes: { internal: true, external: true, cluster: true },
    ...init,
  }) as EndpointInit

/** A view that tests change step by step; each step says what changed. */
export class TestView implements NodeView {
  readonly nodeName = 'worker-1'
  readonly services = new Map<string, ServiceEndpoints>()
  readonly serviceCidrs = new Map<string, localv1.ServiceCIDR>()
  node: globalv1.Node | undefined

  change(changed: { readonly [path: string]: ServiceEndpoints | undefined }, init: Partial<Changes> = {}): Changes {
    const services = new Map<string, ServiceChange>()
    for (const [path, after] of Object.entries(changed)) {
      services.set(path, { before: this.services.get(path), after })
      if (after) this.services.set(path, after)
      else this.services.delete(path)
    }
    return { full: false, services, node: false, serviceCidrs: false, triggers: [], ...init }
  }
}

/** What a runner tells about a sync. */
export const syncReport = (view: NodeView, changes: Changes, more: Partial<SyncReport> = {}): SyncReport => ({
  view,
  changes,
  startedAtMs: 0,
  durationMs: 0,
  steps: [],
  ...more,
})
