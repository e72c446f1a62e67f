import { Affinity, type RememberedClient } from './affinity.js'
import { type EndpointAddress, Rotation } from './rotation.js'

export type { EndpointAddress } from './rotation.js'

/** Which traffic: to cluster IPs; from outside; from pods and this node to addresses meant for the outside. */
export const scopes = ['internal', 'external', 'cluster'] as const
export type Scope = (typeof scopes)[number]

export type ScopedEndpoints = Readonly<Record<Scope, readonly EndpointAddress[]>>

export interface BalancerClock {
  /** Milliseconds that only go forward. */
  readonly now: () => number
  /** As Math.random. */
  readonly random: () => number
}

/** What a change did to endpoints, by their keys. */
export interface EndpointChanges {
  /** They serve nobody any more. */
  readonly gone: ReadonlySet<string>
  /** They get new connections, but no longer of this kind of traffic. */
  readonly forbidden: Readonly<Record<Scope, ReadonlySet<string>>>
  /** Unknown before the change. They may have been known once. */
  readonly added: ReadonlySet<string>
}

const forEachScope = <T>(make: (scope: Scope) => T): Record<Scope, T> => ({
  internal: make('internal'),
  external: make('external'),
  cluster: make('cluster'),
})

/** Chooses endpoints for one service port in one family. */
export class Balancer {
  readonly #rotations: Readonly<Record<Scope, Rotation>>
  /** One for each kind of traffic: where their endpoints differ, they would take a client's session from each other. */
  readonly #affinities: Readonly<Record<Scope, Affinity>>
  /** Endpoints that serve: those that get new connections, and those that only drain. */
  #known = new Set<string>()

  constructor({ now, random }: BalancerClock) {
    this.#rotations = forEachScope(() => new Rotation(random))
    this.#affinities = forEachScope(() => new Affinity(now))
  }

  /**
   * @param affinitySeconds undefined: no session affinity
   * @param draining keys of endpoints that get no new connections but still serve those they have
   */
  set(
    endpoints: ScopedEndpoints,
    affinitySeconds: number | undefined,
    draining: readonly string[] = [],
  ): EndpointChanges {
    const before = forEachScope((scope) => this.endpointKeys(scope))
    const used = new Set(scopes.flatMap((scope) => endpoints[scope].map(({ key }) => key)))
    const known = new Set([...used, ...draining])
    const gone = new Set([...this.#known].filter((key) => !known.has(key)))
    const added = new Set([...known].filter((key) => !this.#known.has(key)))
    this.#known = known
    const timeoutMs = affinitySeconds === undefined ? undefined : affinitySeconds * 1000
    for (const scope of scopes) {
      this.#rotations[scope].set(endpoints[scope])
      const affinity = this.#affinities[scope]
      affinity.timeoutMs = timeoutMs
      if (timeoutMs === undefined) affinity.cleanUp()
      if (gone.size > 0) affinity.forget(gone)
    }
    const forbidden = forEachScope(
      (scope) => new Set(before[scope].filter((key) => used.has(key) && !this.has(key, scope))),
    )
    return { gone, forbidden, added }
  }

  /**
   * The endpoint for a new connection. `tried` are the ones that this connection has failed at; they are passed over as long
   * as there is another, and the client's session moves.
   */
  next(scope: Scope, clientIp: string, tried?: ReadonlySet<string>): EndpointAddress | undefined {
    const remembered = this.#recall(scope, clientIp, tried)
    const chosen = remembered ?? this.#rotations[scope].next(tried)
    if (chosen) this.#affinities[scope].remember(clientIp, chosen)
    return chosen
  }

  /** A client could not be served by an endpoint that it had been given: it shall have another one next time. */
  leave(clientIp: string, endpointKey: string): void {
    for (const affinity of Object.values(this.#affinities)) affinity.leave(clientIp, endpointKey)
  }

  /** Whether an endpoint gets new connections of a kind of traffic. */
  has(endpointKey: string, scope: Scope): boolean {
    return this.#rotations[scope].has(endpointKey)
  }

  endpointKeys(scope: Scope): string[] {
    return this.#rotations[scope].endpoints.map(({ key }) => key)
  }

  cleanUpStaleSessions(): void {
    for (const affinity of Object.values(this.#affinities)) affinity.cleanUp()
  }

  /** The clients whose session affinity is remembered for a kind of traffic, and the keys of their endpoints. */
  sessions(scope: Scope): RememberedClient[] {
    return this.#affinities[scope].sessions()
  }

  /** The endpoint that the client has a session with, for this kind of traffic or else for another, unless it must not be used here. */
  #recall(scope: Scope, clientIp: string, tried: ReadonlySet<string> | undefined): EndpointAddress | undefined {
    for (const from of [scope, ...scopes.filter((other) => other !== scope)]) {
      const endpoint = this.#affinities[from].recall(clientIp)
      if (endpoint && !tried?.has(endpoint.key) && this.has(endpoint.key, scope)) return endpoint
    }
    return undefined
  }
}
