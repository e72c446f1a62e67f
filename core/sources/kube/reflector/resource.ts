import type { KubeConnection } from '../client/index.js'
import type { ReflectorTiming } from './timing.js'

/** A resource of the Kubernetes API that is watched. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** The plural name in paths and RBAC rules, for instance `endpointslices`. */
  readonly name: string
  readonly labelSelector?: string
  /** Dropped if the server does not know the field: the reader of the objects must filter again. */
  readonly fieldSelector?: string
  /** If the server does not have it, or refuses it, kpng continues without it. */
  readonly optional?: boolean
}

/** What every request of a reflector needs. */
export interface RequestContext {
  readonly connection: KubeConnection
  readonly resource: Resource
  readonly timing: ReflectorTiming
}

export const pathOf = ({ group, version, name }: Resource): string =>
  group === '' ? `/api/${version}/${name}` : `/apis/${group}/${version}/${name}`

/** The selectors of a resource, as query parameters. */
export const selectorsOf = ({ labelSelector, fieldSelector }: Resource): Record<string, string> => ({
  ...(labelSelector && { labelSelector }),
  ...(fieldSelector && { fieldSelector }),
})

/** The rule that a ClusterRole needs for watching a resource, as YAML. */
export const ruleOf = ({ group, name }: Resource): string =>
  `{apiGroups: ["${group}"], resources: ["${name}"], verbs: ["list", "watch"]}`
