import type { ClusterState, EndpointSource } from '../../store/index.js'

/** What one file says, and what of it could not be used. */
export interface FileContent extends ClusterState {
  /** Those of `endpoints` that stand below their service in a state file, and so go with it. */
  readonly embedded: ReadonlySet<EndpointSource>
  /** In the order of the file: what, and why. */
  readonly skipped: readonly Skipped[]
}

export interface Skipped {
  /** For instance `Service default/web`; empty when it is the file itself. */
  readonly object: string
  readonly reason: string
}

/** A file's content while it is being read. The first object of a name stays, another one is reported. */
export class ContentBuilder {
  readonly #services = new Map<string, ClusterState['services'][number]>()
  readonly #endpoints = new Map<string, EndpointSource>()
  readonly #embedded = new Set<EndpointSource>()
  readonly #nodes = new Map<string, ClusterState['nodes'][number]>()
  readonly #serviceCidrs = new Map<string, ClusterState['serviceCidrs'][number]>()
  readonly #skipped: Skipped[] = []
  readonly #seen = new Set<string>()

  /** Says once that something of an object cannot be used. */
  skip(object: string, reason: string): void {
    const key = `${object}\n${reason}`
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    this.#skipped.push({ object, reason })
  }

  reportFor(object: string): (reason: string) => void {
    return (reason) => this.skip(object, reason)
  }

  addService(service: ClusterState['services'][number]): boolean {
    const name = `${service.namespace}/${service.name}`
    return this.#add(this.#services, `Service ${name}`, name, service)
  }

  addSlice(source: EndpointSource): boolean {
    const name = `${source.namespace}/${source.name}`
    return this.#add(this.#endpoints, `EndpointSlice ${name}`, name, source)
  }

  /** The endpoints that stand below a service in a state file. */
  addEmbedded(source: EndpointSource): void {
    this.#embedded.add(source)
    this.#endpoints.set(`${source.namespace}/${source.name}`, source)
  }

  /** The service that has a source of this name already. */
  ownerOf(namespace: string, source: string): string | undefined {
    return this.#endpoints.get(`${namespace}/${source}`)?.service
  }

  addNode(node: ClusterState['nodes'][number]): boolean {
    return this.#add(this.#nodes, `Node ${node.name}`, node.name, node)
  }

  addServiceCidr(cidr: ClusterState['serviceCidrs'][number]): boolean {
    return this.#add(this.#serviceCidrs, `ServiceCIDR ${cidr.name}`, cidr.name, cidr)
  }

  build(): FileContent {
    return {
      services: [...this.#services.values()],
      endpoints: [...this.#endpoints.values()],
      nodes: [...this.#nodes.values()],
      serviceCidrs: [...this.#serviceCidrs.values()],
      embedded: this.#embedded,
      skipped: this.#skipped,
    }
  }

  #add<T>(known: Map<string, T>, object: string, name: string, value: T): boolean {
    if (!known.has(name)) {
      known.set(name, value)
      return true
    }
    this.skip(object, 'It is there twice. The first one stays, the other is left out.')
    return false
  }
}
