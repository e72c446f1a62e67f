import { type Cidr, CidrSet, isLoopback } from '@kpng/api'

/** Plain data: it is sent to other threads. */
export interface InsideAddresses {
  /** The addresses of this node. */
  readonly own: readonly string[]
  /** Those of pods, and of this node. */
  readonly inside: readonly Cidr[]
}

/** Who is inside the cluster. As of the last `set`. */
export class Insiders {
  #own: ReadonlySet<string> = new Set()
  #inside = new CidrSet([])

  set({ own, inside }: InsideAddresses): void {
    this.#own = new Set(own)
    this.#inside = new CidrSet(inside)
  }

  isOwn(ip: string): boolean {
    return this.#own.has(ip) || isLoopback(ip)
  }

  isInside(ip: string): boolean {
    return this.isOwn(ip) || this.#inside.has(ip)
  }
}
