import type { EndpointAddress, Scope, ScopedEndpoints } from '../usable-endpoints.js'
import { Affinity } from './affinity.js'
import { Rotation } from './rotation.js'

export interface BalancerClock {
  /** Milliseconds that only go forward. */
  readonly now: () => number
  /** As Math.random. */
  readonly random: () => number
}

/** Kubernetes' default of sessionAffinityConfig.clientIP.timeoutSeconds. */
const defaultAffinitySeconds = 10_800

/** Chooses endpoints for one service port in one family. */
export class Balancer {
  readonly #rotations: Record<Scope, Rotation>
  readonly #affinity: Affinity
  #known = new Set<string>()

  constructor({ now, random }: BalancerClock) {
    this.#rotations = {
      internal: new Rotation(random),
      external: new Rotation(random),
      cluster: new Rotation(random),
    }
    this.#affinity = new Affinity(now)
  }

  /**
   * Takes the newest endpoints and the affinity timeout (undefined: no affinity). Returns the keys of endpoints that are no
   * longer used for anything.
   */
  set(endpoints: ScopedEndpoints, affinitySeconds: number | undefined): ReadonlySet<string> {
    const known = new Set<string>()
    for (const scope of ['internal', 'external', 'cluster'] as const) {
      this.#rotations[scope].set(endpoints[scope])
      for (const { key } of endpoints[scope]) known.add(key)
    }
    const gone = new Set([...this.#known].filter((key) => !known.has(key)))
    this.#known = known
    this.#affinity.timeoutMs =
      affinitySeconds === undefined ? undefined : (affinitySeconds || defaultAffinitySeconds) * 1000
    if (affinitySeconds === undefined) this.#affinity.cleanUp()
    if (gone.size > 0) this.#affinity.forget(gone)
    return gone
  }

  /**
   * The endpoint for a new connection. `tried` are the ones that this connection has failed at; they are passed over as long
   * as there is another, and the client's session moves.
   */
  next(scope: Scope, clientIp: string, tried?: ReadonlySet<string>): EndpointAddress | undefined {
    const rotation = this.#rotations[scope]
    const remembered = this.#affinity.recall(clientIp)
    // The session may be with an endpoint that this kind of traffic must not use, or that just failed.
    if (remembered && !tried?.has(remembered.key) && rotation.endpoints.some(({ key }) => key === remembered.key)) {
      return remembered
    }
    const chosen = rotation.next(tried)
    if (chosen) this.#affinity.remember(clientIp, chosen)
    return chosen
  }

  /** Whether an endpoint is still in use for anything. */
  has(endpointKey: string): boolean {
    return this.#known.has(endpointKey)
  }

  endpointKeys(scope: Scope): string[] {
    return this.#rotations[scope].endpoints.map(({ key }) => key)
  }

  cleanUpStaleSessions(): void {
    this.#affinity.cleanUp()
  }

  get sessions(): number {
    return this.#affinity.size
  }
}
