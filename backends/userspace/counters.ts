/** What one service port has done since it was added. Numbers only go up, but for `active`. */
export interface ServicePortCounters {
  /** TCP connections and UDP sessions that were proxied to an endpoint. */
  connections: number
  /** Those that are open now. */
  active: number
  bytesToEndpoint: number
  bytesToClient: number
  /** Attempts at one endpoint that failed; another one may have succeeded. */
  dialFailures: number
  /** Clients that no endpoint could be found for, though there should have been one. */
  failures: number
  /** UDP sessions that were ended to make room for new clients. */
  crowdedOut: number
  /** Clients that were turned away: no endpoint, or not in the source ranges. */
  refused: number
}

/** Counters by service port (`namespace/name:port`), to be read by whoever shows metrics. */
export class Counters {
  readonly #byServicePort = new Map<string, ServicePortCounters>()

  get byServicePort(): ReadonlyMap<string, Readonly<ServicePortCounters>> {
    return this.#byServicePort
  }

  add(servicePort: string): ServicePortCounters {
    const counters: ServicePortCounters = {
      connections: 0,
      active: 0,
      bytesToEndpoint: 0,
      bytesToClient: 0,
      dialFailures: 0,
      failures: 0,
      crowdedOut: 0,
      refused: 0,
    }
    this.#byServicePort.set(servicePort, counters)
    return counters
  }

  remove(servicePort: string): void {
    this.#byServicePort.delete(servicePort)
  }
}
