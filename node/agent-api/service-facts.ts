import type { EndpointReason } from '@kpng/api'

/** What only the core knows about the endpoints of a Service, as one node sees them. */
export interface ServiceFacts {
  /** Endpoints that exist. */
  readonly total: number
  /** Why the others are not used, by address. Empty if all are used. */
  readonly reasons: ReadonlyMap<string, EndpointReason>
  /** How many are not used, by reason. */
  readonly leftOut: Readonly<Partial<Record<EndpointReason, number>>>
  /** Whether all that are used are terminating, and stand in for ready ones that do not exist. */
  readonly onlyStandIns: boolean
}

export interface ServiceFactsOf {
  /**
   * The facts about a Service; undefined if the core does not know it.
   * @param used the number of endpoints that the node uses: if it is that of all that exist and they are ready, the answer is cheap
   */
  (service: string, used: number): ServiceFacts | undefined
  /**
   * Calls the listener with the Services whose facts may have changed; undefined: any. Endpoints that nobody uses come and go without a sync.
   * Returns the function that ends it. Missing: the facts never change by themselves.
   */
  readonly onChange?: (listener: (services: Iterable<string> | undefined) => void) => () => void
}
