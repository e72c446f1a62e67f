/**
 * Who owns an address with a port, or a node port. Several services may ask for the same one. Whose cluster IP it is owns it:
 * anybody may write any external IP into a service, and must not get another one's traffic by that (CVE-2020-8554). Among equals
 * it is the one whose name comes first, whatever the order in which they came; the next one takes over when it goes.
 */
export class Claims {
  readonly #asClusterIp = new Claimants()
  readonly #otherwise = new Claimants()

  owner(key: string): string | undefined {
    return this.#asClusterIp.first(key) ?? this.#otherwise.first(key)
  }

  /** All who ask for it. */
  claimants(key: string): readonly string[] {
    return [...this.#asClusterIp.of(key), ...this.#otherwise.of(key)]
  }

  add(key: string, path: string, isClusterIp: boolean): void {
    this.#kind(isClusterIp).add(key, path)
  }

  remove(key: string, path: string, isClusterIp: boolean): void {
    this.#kind(isClusterIp).remove(key, path)
  }

  #kind(isClusterIp: boolean): Claimants {
    return isClusterIp ? this.#asClusterIp : this.#otherwise
  }
}

/** Who asks for what. One claimant is kept as it is, since that is nearly always so. */
class Claimants {
  readonly #claimants = new Map<string, string | Set<string>>()

  first(key: string): string | undefined {
    const claimants = this.#claimants.get(key)
    if (claimants === undefined || typeof claimants === 'string') return claimants
    return [...claimants].sort()[0]
  }

  of(key: string): readonly string[] {
    const claimants = this.#claimants.get(key)
    return claimants === undefined ? [] : typeof claimants === 'string' ? [claimants] : [...claimants]
  }

  add(key: string, path: string): void {
    const others = this.of(key)
    this.#claimants.set(key, others.every((other) => other === path) ? path : new Set([...others, path]))
  }

  remove(key: string, path: string): void {
    const others = this.of(key).filter((other) => other !== path)
    if (others.length === 0) this.#claimants.delete(key)
    else this.#claimants.set(key, others.length === 1 ? (others[0] as string) : new Set(others))
  }
}
