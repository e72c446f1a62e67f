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
  /** Dropped if the server does not know the field: whoever reads the objects must filter again. */
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

/** What every object has, whatever its kind. */
export interface KubeObject {
  readonly metadata: { readonly name: string; readonly namespace?: unknown; readonly resourceVersion?: unknown }
}

export function isKubeObject(value: unknown): value is KubeObject {
  const metadata = (value as { metadata?: { name?: unknown } | null } | null | undefined)?.metadata
  return typeof metadata?.name === 'string' && metadata.name !== ''
}

/** Empty for an object without a namespace. */
export const namespaceOf = ({ metadata: { namespace } }: KubeObject): string =>
  typeof namespace === 'string' ? namespace : ''

/** The resourceVersion of any object; empty if it has none. */
export function versionOf(object: unknown): string {
  const version = (object as { metadata?: { resourceVersion?: unknown } | null } | null)?.metadata?.resourceVersion
  return typeof version === 'string' ? version : ''
}

/** `namespace/name` */
export const keyOf = (object: KubeObject): string => `${namespaceOf(object)}/${object.metadata.name}`

export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
