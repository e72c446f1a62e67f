/**
 * Who owns an address with a port, or a node port. Two services may ask for the same external IP and port; then the one whose
 * name comes first is served there, whatever the order in which they came, and the other one takes over when it goes.
 */
export class Claims {
  /** One claimant is kept as it is, since that is nearly always so. */
  readonly #claimants = new Map<string, string | Set<string>>()

  owner(key: string): string | undefined {
    const claimants = this.#claimants.get(key)
    if (claimants === undefined || typeof claimants === 'string') return claimants
    return [...claimants].sort()[0]
  }

  /** All who ask for it. */
  claimants(key: string): readonly string[] {
    const claimants = this.#claimants.get(key)
    return claimants === undefined ? [] : typeof claimants === 'string' ? [claimants] : [...claimants]
  }

  add(key: string, path: string): void {
    const others = this.claimants(key)
    this.#claimants.set(key, others.every((other) => other === path) ? path : new Set([...others, path]))
  }

  remove(key: string, path: string): void {
    const others = this.claimants(key).filter((other) => other !== path)
    if (others.length === 0) this.#claimants.delete(key)
    else this.#claimants.set(key, others.length === 1 ? (others[0] as string) : new Set(others))
  }
}
