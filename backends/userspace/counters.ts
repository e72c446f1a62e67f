import type { ServicePortTraffic } from '@kpng/client'

/** What one service port has done since it was added. Numbers only go up, except `active`. */
export type ServicePortCounters = { -readonly [K in keyof ServicePortTraffic]: ServicePortTraffic[K] }

/** Counters by service port (`namespace/name:port`), for metrics. */
export class Counters {
  readonly #byServicePort = new Map<string, ServicePortTraffic>()

  get byServicePort(): ReadonlyMap<string, ServicePortTraffic> {
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

  /** Those of a service port that somebody else counts. */
  set(servicePort: string, traffic: ServicePortTraffic): void {
    this.#byServicePort.set(servicePort, traffic)
  }

  remove(servicePort: string): void {
    this.#byServicePort.delete(servicePort)
  }
}
