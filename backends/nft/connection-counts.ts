import { type Log, messageOf } from '@kpng/api'
import type { ServicePortConnections } from '@kpng/client'
import { type Frontend, frontendId } from '@kpng/dataplane'

/** How many connections were made to a frontend; undefined if they are not counted yet. */
export type Packets = (frontend: Frontend) => number | undefined

export interface ConnectionCountsOptions {
  readonly frontends: () => Iterable<Frontend>
  /** Reads the kernel's counters. */
  readonly read: () => Promise<Packets>
  readonly log: Log
}

/**
 * Adds up the kernel's counters per Service port. The counter of an element starts at 0 again when the element or the table is
 * made again. A total never decreases because of that, as long as its Service port exists.
 */
export class ConnectionCounts {
  readonly #options: ConnectionCountsOptions
  #packets = new Map<string, number>()
  #totals = new Map<string, ServicePortConnections>()
  #reading: Promise<readonly ServicePortConnections[]> | undefined

  constructor(options: ConnectionCountsOptions) {
    this.#options = options
  }

  /** Never rejects: if the counters cannot be read, it returns the last totals. Concurrent calls share one result. */
  get = (): Promise<readonly ServicePortConnections[]> => {
    this.#reading ??= this.#update().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #update(): Promise<readonly ServicePortConnections[]> {
    try {
      this.#add(await this.#options.read())
    } catch (error) {
      this.#options.log.warn('Cannot read the connection counters; the metrics show the last values', {
        error: messageOf(error),
      })
    }
    return [...this.#totals.values()]
  }

  #add(packetsOf: Packets): void {
    const packets = new Map<string, number>()
    const totals = new Map<string, ServicePortConnections>()
    for (const frontend of this.#options.frontends()) {
      const count = packetsOf(frontend)
      if (count === undefined) continue
      const id = frontendId(frontend)
      packets.set(id, count)
      const [namespace = '', service = ''] = frontend.service.split('/')
      const name = `${frontend.service}:${frontend.portName}`
      const known = totals.get(name) ?? this.#totals.get(name)
      const connections = (known?.connections ?? 0) + increase(this.#packets.get(id), count)
      totals.set(name, { namespace, service, port: frontend.portName, connections })
    }
    this.#packets = packets
    this.#totals = totals
  }
}

const increase = (before = 0, now: number): number => (now >= before ? now - before : now)
