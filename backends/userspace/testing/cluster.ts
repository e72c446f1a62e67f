import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'
import type { Backend, NodeView, ServiceEndpoints } from '@kpng/client'

// A node's view that tests write by hand and sync step by step.

type ServiceInit = MessageInitShape<typeof localv1.ServiceSchema>
type EndpointInit = MessageInitShape<typeof localv1.EndpointSchema>

export const { TCP, UDP, SCTP } = localv1.Protocol

export const everywhere = { internal: true, external: true, cluster: true }

export const service = (name: string, init: Exclude<ServiceInit, localv1.Service> = {}): localv1.Service =>
  create(localv1.ServiceSchema, {
    namespace: 'default',
    name,
    type: 'ClusterIP',
    ips: { clusterIps: { v4: ['127.40.0.1'] } },
    ports: [{ name: 'http', protocol: TCP, port: 8080, targetPort: 8080 }],
    ...init,
  } as ServiceInit)

/** An endpoint by its address; its port when it differs from the service's target port. */
export function endpoint(
  ip: string,
  port?: number,
  init: Exclude<EndpointInit, localv1.Endpoint> = {},
): localv1.Endpoint {
  return create(localv1.EndpointSchema, {
    ips: ip.includes(':') ? { v6: [ip] } : { v4: [ip] },
    scopes: everywhere,
    ...(port === undefined ? {} : { portOverrides: [{ name: 'http', port }] }),
    ...init,
  } as EndpointInit)
}

export class Cluster {
  readonly services = new Map<string, ServiceEndpoints>()
  readonly #backend: Backend
  #node: globalv1.Node | undefined
  #first = true

  constructor(backend: Backend) {
    this.#backend = backend
  }

  get view(): NodeView {
    return { nodeName: 'node', node: this.#node, services: this.services, serviceCidrs: new Map() }
  }

  async setNode(init: { addresses?: string[]; podCidrs?: string[] }): Promise<void> {
    this.#node = create(globalv1.NodeSchema, { name: 'node', ...init })
    await this.#sync(new Map(), true)
  }

  /** Sets a service (undefined: removes it) and syncs. */
  async set(
    name: string,
    init: Parameters<typeof service>[1] | undefined,
    endpoints: readonly localv1.Endpoint[] = [],
  ): Promise<void> {
    const path = `default/${name}`
    const before = this.services.get(path)
    const after = init && { service: service(name, init), endpoints }
    if (after) this.services.set(path, after)
    else this.services.delete(path)
    await this.#sync(new Map([[path, { before, after }]]), false)
  }

  /** As after a failed sync, or on drift. */
  async fullSync(): Promise<void> {
    this.#first = true
    await this.#sync(new Map(), false)
  }

  async #sync(
    services: ReadonlyMap<string, { before: ServiceEndpoints | undefined; after: ServiceEndpoints | undefined }>,
    node: boolean,
  ) {
    const full = this.#first
    this.#first = false
    await this.#backend.sync(this.view, { full, services, node, serviceCidrs: false, triggers: [] })
  }
}
