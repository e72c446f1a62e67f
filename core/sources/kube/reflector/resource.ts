/** A resource of the Kubernetes API that is watched. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** The plural name in paths and RBAC rules, for instance `endpointslices`. */
  readonly name: string
  readonly labelSelector?: string
  /** Dropped when the server does not know the field: whoever reads the objects must filter again. */
  readonly fieldSelector?: string
  /** The server may lack it, or refuse it, and kpng goes on without. */
  readonly optional?: boolean
}

export const pathOf = ({ group, version, name }: Resource): string =>
  group === '' ? `/api/${version}/${name}` : `/apis/${group}/${version}/${name}`

/** The rule that a ClusterRole needs for watching a resource, as it is written in YAML. */
export const ruleOf = ({ group, name }: Resource): string =>
  `{apiGroups: ["${group}"], resources: ["${name}"], verbs: ["list", "watch"]}`

/** What is read of any object before its kind matters. */
export interface KubeObject {
  readonly metadata: { readonly name: string; readonly namespace?: unknown; readonly resourceVersion?: unknown }
}

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** Receives the objects of one resource, in the order in which they changed. */
export interface ObjectHandler {
  /** An object is new, or different. It is parsed JSON that nobody else holds: keep of it only what is used. */
  set(object: KubeObject): void
  delete(namespace: string, name: string): void
  /** Something came without a name, and so is no object. It was left out. */
  nameless(): void
  /**
   * A batch has ended: what was handed over since the last one belongs into one update.
   * @param listed the batch completes a list: all that exists has been handed over
   */
  flush(listed: boolean): void
}

/** `namespace/name`; the namespace of an object that has none is empty. */
export const keyOf = ({ metadata: { namespace, name } }: KubeObject): string =>
  `${typeof namespace === 'string' ? namespace : ''}/${name}`

export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

export const versionOf = ({ metadata: { resourceVersion } }: KubeObject): string =>
  typeof resourceVersion === 'string' ? resourceVersion : ''

/** Whether a value has the little that every object has. */
export function isKubeObject(value: unknown): value is KubeObject {
  const metadata = (value as { metadata?: { name?: unknown } | null } | null | undefined)?.metadata
  return typeof metadata?.name === 'string' && metadata.name !== ''
}
