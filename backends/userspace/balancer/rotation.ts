export interface EndpointAddress {
  readonly ip: string
  readonly port: number
  /** `10.1.0.5:8080` */
  readonly key: string
}

/** Endpoints in turn. A change of the set shuffles it and begins anew, so that not every node starts with the same one. */
export class Rotation {
  readonly #random: () => number
  #endpoints: readonly EndpointAddress[] = []
  #index = 0

  constructor(random: () => number) {
    this.#random = random
  }

  get endpoints(): readonly EndpointAddress[] {
    return this.#endpoints
  }

  has(endpointKey: string): boolean {
    return this.#endpoints.some(({ key }) => key === endpointKey)
  }

  /** The same endpoints in any order are no change: the turn goes on. */
  set(endpoints: readonly EndpointAddress[]): void {
    const known = new Set(this.#endpoints.map(({ key }) => key))
    const distinct = new Map(endpoints.map((endpoint) => [endpoint.key, endpoint]))
    if (distinct.size === known.size && [...distinct.keys()].every((key) => known.has(key))) return
    this.#endpoints = shuffled([...distinct.values()], this.#random)
    this.#index = 0
  }

  /** The next one that is not in `tried`; when all are, the next one all the same. */
  next(tried?: ReadonlySet<string>): EndpointAddress | undefined {
    const count = this.#endpoints.length
    if (count === 0) return undefined
    let chosen = this.#index
    if (tried !== undefined && tried.size > 0) {
      for (let step = 0; step < count; step++) {
        const at = (this.#index + step) % count
        if (tried.has((this.#endpoints[at] as EndpointAddress).key)) continue
        chosen = at
        break
      }
    }
    this.#index = (chosen + 1) % count
    return this.#endpoints[chosen]
  }
}

function shuffled<T>(items: T[], random: () => number): T[] {
  for (let last = items.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const item = items[last] as T
    items[last] = items[other] as T
    items[other] = item
  }
  return items
}
