/**
 * Which objects have been handed on, and in which version. A list that follows a lost watch is compared with it: an object in
 * the version that is known needs no second look, and one that is known and not in the list is gone.
 */
export class KnownObjects {
  readonly #versions = new Map<string, string>()
  #unlisted: Set<string> | undefined

  get size(): number {
    return this.#versions.size
  }

  /** A complete list begins (again): what it does not name by its end is gone. */
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
    // A server that gives no versions leaves nothing to compare by.
    if (resourceVersion !== '' && this.#versions.get(key) === resourceVersion) return false
    this.#versions.set(key, resourceVersion)
    return true
  }

  /** The objects stay known; in which version is no longer certain, so whatever comes is new. */
  forgetVersions(): void {
    for (const key of this.#versions.keys()) this.#versions.set(key, '')
  }

  /** Returns whether the object was known. */
  delete(key: string): boolean {
    this.#unlisted?.delete(key)
    return this.#versions.delete(key)
  }
}
