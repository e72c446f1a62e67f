import type { Kinds } from '../kinds/index.js'
import { allVerbs, apiVersionOf, type Kind } from '../kinds/kind.js'
import { type MissingKind, missingKinds } from '../kinds/missing.js'

/** Kinds that answer a question and are not stored. */
export const reviewKinds = [
  { group: 'authorization.k8s.io', plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
  { group: 'authorization.k8s.io', plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview' },
  { group: 'authentication.k8s.io', plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' },
] as const

interface GroupVersion {
  group: string
  version: string
}

interface Resource {
  name: string
  singularName: string
  namespaced: boolean
  group: string
  version: string
  kind: string
  verbs: readonly string[]
  shortNames?: readonly string[]
  categories?: readonly string[]
}

const mainResource = (kind: Kind): Resource => ({
  name: kind.plural,
  singularName: kind.singular,
  namespaced: kind.namespaced,
  group: kind.group,
  version: kind.version,
  kind: kind.kind,
  verbs: allVerbs,
  ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
  ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
})

function subresources(kind: Kind): Resource[] {
  const verbs = ['get', 'patch', 'update']
  const { namespaced, group, version } = kind
  const status = { name: `${kind.plural}/status`, singularName: '', namespaced, group, version, kind: kind.kind, verbs }
  const scale = { ...status, name: `${kind.plural}/scale`, kind: 'Scale', group: 'autoscaling' }
  return [...(kind.hasStatus ? [status] : []), ...(kind.hasScale ? [scale] : [])]
}

const reviewsOf = (group: string): Resource[] =>
  reviewKinds
    .filter((review) => review.group === group)
    .map(({ plural, kind }) => ({
      name: plural,
      singularName: kind.toLowerCase(),
      namespaced: false,
      group,
      version: 'v1',
      kind,
      verbs: ['create'],
    }))

/** Without verbs: known by name, and nothing can be done with it. */
const missingResource = ({ plural, kind, ...rest }: MissingKind): Resource => ({
  ...rest,
  name: plural,
  singularName: kind.toLowerCase(),
  kind,
  verbs: [],
})

/** What this server has, in the three ways clients ask for it. */
export class Discovery {
  readonly #groupVersions: (GroupVersion & { resources: Resource[] })[]

  constructor(kinds: Kinds) {
    const stored = kinds.groupVersions.map(({ group, version, kinds: own }) => ({
      group,
      version,
      resources: own.flatMap((kind) => [mainResource(kind), ...subresources(kind)]),
    }))
    const reviews = [...new Set(reviewKinds.map(({ group }) => group))].map((group) => ({
      group,
      version: 'v1',
      resources: reviewsOf(group),
    }))
    this.#groupVersions = [...stored, ...reviews]
    for (const missing of missingKinds) {
      const { group, version } = missing
      const found = this.#groupVersions.find((item) => item.group === group && item.version === version)
      if (found) found.resources.push(missingResource(missing))
      else this.#groupVersions.push({ group, version, resources: [missingResource(missing)] })
    }
  }

  /** The answer to a discovery path; undefined when it is none. */
  answer(pathname: string, accept: string, address: string): unknown {
    const aggregated = /application\/json;[^,]*g=apidiscovery\.k8s\.io[^,]*/.exec(accept)?.[0]
    if (pathname === '/api' || pathname === '/apis') {
      const legacy = pathname === '/api'
      if (aggregated) return this.#aggregated(legacy, /v=(\w+)/.exec(aggregated)?.[1] ?? 'v2')
      return legacy ? legacyVersions(address) : { kind: 'APIGroupList', apiVersion: 'v1', groups: this.#groups() }
    }
    const [root, group = '', version, extra] = pathname.slice(1).split('/')
    if (root === 'api' && group === 'v1' && version === undefined) return this.#resourceList('', 'v1')
    if (root !== 'apis' || extra !== undefined) return undefined
    if (version === undefined) {
      const found = this.#groups().find(({ name }) => name === group)
      return found && { kind: 'APIGroup', apiVersion: 'v1', ...found }
    }
    return this.#resourceList(group, version)
  }

  #groups() {
    return this.#groupVersions
      .filter(({ group }) => group !== '')
      .map(({ group, version }) => {
        const preferred = { groupVersion: `${group}/${version}`, version }
        return { name: group, versions: [preferred], preferredVersion: preferred }
      })
  }

  #resourceList(group: string, version: string): unknown {
    const found = this.#groupVersions.find((item) => item.group === group && item.version === version)
    if (!found) return undefined
    const resources = found.resources.map(({ group: own, version: ownVersion, ...resource }) =>
      // Only a kind of another group needs to say which.
      own === group ? resource : { ...resource, group: own, version: ownVersion },
    )
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf({ group, version }), resources }
  }

  #aggregated(legacy: boolean, apiVersion: string) {
    const items = this.#groupVersions
      .filter(({ group }) => (group === '') === legacy)
      .map(({ group, version, resources }) => ({
        metadata: { name: group, creationTimestamp: null },
        versions: [{ version, freshness: 'Current', resources: aggregatedResources(resources) }],
      }))
    return { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${apiVersion}`, metadata: {}, items }
  }

  /** The media type of an aggregated answer names its form; clients tell the two forms apart by it. */
  static contentType(body: unknown): string {
    const { kind, apiVersion = '' } = body as { kind?: string; apiVersion?: string }
    if (kind !== 'APIGroupDiscoveryList') return 'application/json'
    return `application/json;g=apidiscovery.k8s.io;v=${apiVersion.split('/')[1]};as=APIGroupDiscoveryList`
  }
}

const legacyVersions = (address: string) => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
})

function aggregatedResources(resources: readonly Resource[]) {
  const kindOf = ({ group, version, kind }: Resource) => ({ group, version, kind })
  return resources
    .filter(({ name }) => !name.includes('/'))
    .map((resource) => {
      const below = resources.filter(({ name }) => name.startsWith(`${resource.name}/`))
      return {
        resource: resource.name,
        responseKind: kindOf(resource),
        scope: resource.namespaced ? 'Namespaced' : 'Cluster',
        singularResource: resource.singularName,
        verbs: resource.verbs,
        ...(resource.shortNames ? { shortNames: resource.shortNames } : {}),
        ...(resource.categories ? { categories: resource.categories } : {}),
        ...(below.length === 0
          ? {}
          : {
              subresources: below.map((item) => ({
                subresource: item.name.slice(resource.name.length + 1),
                responseKind: kindOf(item),
                verbs: item.verbs,
              })),
            }),
      }
    })
}
