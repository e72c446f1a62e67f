import type { ClusterState } from '../../store/index.js'
import type { FileContent, Skipped } from './content.js'

export interface NamedContent {
  readonly file: string
  readonly content: FileContent
}

/** What all files say together, in the order given. Where two files have the same object, the first one stays. */
export function mergeContents(
  contents: readonly NamedContent[],
): ClusterState & { readonly skipped: readonly Skipped[] } {
  const skipped: Skipped[] = []
  const fileOf = new Map<string, string>()
  const claim = (object: string, file: string): boolean => {
    const earlier = fileOf.get(object)
    if (earlier === undefined) fileOf.set(object, file)
    else skipped.push({ object: `${file}: ${object}`, reason: `${earlier} has it already. This one is left out.` })
    return earlier === undefined
  }
  const merged = contents.map(({ file, content }) => {
    skipped.push(...skippedIn(file, content.skipped))
    const services = content.services.filter(({ namespace, name }) => claim(`Service ${namespace}/${name}`, file))
    const taken = new Set(services.map(({ namespace, name }) => `${namespace}/${name}`))
    const endpoints = content.endpoints.filter((source) => {
      // The endpoints of a service that is left out go with it; they are not those of the one that stays.
      if (content.embedded.has(source) && !taken.has(`${source.namespace}/${source.service}`)) return false
      return claim(`EndpointSlice ${source.namespace}/${source.name}`, file)
    })
    const nodes = content.nodes.filter(({ name }) => claim(`Node ${name}`, file))
    const serviceCidrs = content.serviceCidrs.filter(({ name }) => claim(`ServiceCIDR ${name}`, file))
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

const skippedIn = (file: string, skipped: readonly Skipped[]): Skipped[] =>
  skipped.map(({ object, reason }) => ({ object: object === '' ? file : `${file}: ${object}`, reason }))
