import type { ClusterState, EndpointSource } from '../../store/index.js'

/** What one file says, and which parts of it were skipped. */
export interface FileContent extends ClusterState {
  /** Those of `endpoints` that are listed below their service in a state file. They are dropped together with it. */
  readonly embedded: ReadonlySet<EndpointSource>
  /** In the order of the file. */
  readonly skipped: readonly Skipped[]
}

export interface Skipped {
  /** For instance `Service default/web`; empty if it is about the file itself. */
  readonly object: string
  /** A sentence. */
  readonly reason: string
}

/** A file's content while it is being read. Of two objects with one name the first is kept and the second is skipped. */
export class ContentBuilder {
  readonly #services = new Map<string, ClusterState['services'][number]>()
  readonly #endpoints = new Map<string, EndpointSource>()
  readonly #embedded = new Set<EndpointSource>()
  readonly #nodes = new Map<string, ClusterState['nodes'][number]>()
  readonly #serviceCidrs = new Map<string, ClusterState['serviceCidrs'][number]>()
  readonly #skipped: Skipped[] = []
  readonly #seen = new Set<string>()

  /** Records that something of an object cannot be used. The same reason is recorded once. */
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

  addSlice(slice: EndpointSource): boolean {
    const name = `${slice.namespace}/${slice.name}`
    return this.#add(this.#endpoints, `EndpointSlice ${name}`, name, slice)
  }

  /** Endpoints that are listed below their service in a state file. */
  addEmbedded(slice: EndpointSource): void {
    this.#embedded.add(slice)
    this.#endpoints.set(`${slice.namespace}/${slice.name}`, slice)
  }

  hasSlice(namespace: string, name: string): boolean {
    return this.#endpoints.has(`${namespace}/${name}`)
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
    this.skip(object, 'It is defined twice. The first definition is used, the second is skipped.')
    return false
  }
}

export interface NamedContent {
  readonly file: string
  readonly content: FileContent
}

/** What all files say together, in the order given. If two files have the same object, the one in the first file is used. */
export function mergeContents(
  contents: readonly NamedContent[],
): ClusterState & { readonly skipped: readonly Skipped[] } {
  const skipped: Skipped[] = []
  const fileOf = new Map<string, string>()
  const isFirst = (object: string, file: string): boolean => {
    const earlier = fileOf.get(object)
    if (earlier === undefined) fileOf.set(object, file)
    else skipped.push({ object: `${file}: ${object}`, reason: `${earlier} defines it already. This one is skipped.` })
    return earlier === undefined
  }
  const merged = contents.map(({ file, content }) => {
    for (const { object, reason } of content.skipped) {
      skipped.push({ object: object === '' ? file : `${file}: ${object}`, reason })
    }
    const services = content.services.filter(({ namespace, name }) => isFirst(`Service ${namespace}/${name}`, file))
    const used = new Set(services.map(({ namespace, name }) => `${namespace}/${name}`))
    const endpoints = content.endpoints.filter((slice) => {
      // The endpoints of a service that is skipped are skipped too: they are not those of the service that is used.
      if (content.embedded.has(slice) && !used.has(`${slice.namespace}/${slice.service}`)) return false
      return isFirst(`EndpointSlice ${slice.namespace}/${slice.name}`, file)
    })
    const nodes = content.nodes.filter(({ name }) => isFirst(`Node ${name}`, file))
    const serviceCidrs = content.serviceCidrs.filter(({ name }) => isFirst(`ServiceCIDR ${name}`, file))
    return { services, endpoints, nodes, serviceCidrs }
  })
  return {
    services: merged.flatMap(({ services }) => services),
    endpoints: merged.flatMap(({ endpoints }) => endpoints),
    nodes: merged.flatMap(({ nodes }) => nodes),
    serviceCidrs: merged.flatMap(({ serviceCidrs }) => serviceCidrs),
    skipped,
  }
}
