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
