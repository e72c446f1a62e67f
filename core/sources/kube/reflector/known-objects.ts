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

/**
 * Which objects have been handed on, and in which version. A list after a lost watch is compared with them: an object in its
 * known version has not changed, and a known object that is not in the list is gone.
 */
export class KnownObjects {
  readonly #versions = new Map<string, string>()
  #unlisted: Set<string> | undefined

  get size(): number {
    return this.#versions.size
  }

  /** A complete list begins, perhaps not for the first time: the objects that it does not name by its end are gone. */
  startList(): void {
    this.#unlisted = new Set(this.#versions.keys())
  }

  /** The list is complete. Returns the keys of the objects that are gone. */
  endList(): readonly string[] {
    const gone = [...(this.#unlisted ?? [])]
    this.#unlisted = undefined
    for (const key of gone) this.#versions.delete(key)
    return gone
  }

  /** Notes an object. Returns whether this version of it is new. */
  set(key: string, resourceVersion: string): boolean {
    this.#unlisted?.delete(key)
    // Without a version there is nothing to compare by.
    if (resourceVersion !== '' && this.#versions.get(key) === resourceVersion) return false
    this.#versions.set(key, resourceVersion)
    return true
  }

  /** Keeps the objects and forgets their versions, so that each object that comes next counts as new. */
  forgetVersions(): void {
    for (const key of this.#versions.keys()) this.#versions.set(key, '')
  }

  /** Returns whether the object was known. */
  delete(key: string): boolean {
    this.#unlisted?.delete(key)
    return this.#versions.delete(key)
  }
}
