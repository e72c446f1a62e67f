import { type Log, messageOf } from '@kpng/api'
import type { ServicePortConnections } from '@kpng/client'
import { type Frontend, frontendId } from '@kpng/dataplane'

/** The number of first packets that a frontend has seen; undefined if it is not counted yet. */
export type Packets = (frontend: Frontend) => number | undefined

export interface ConnectionCountsOptions {
  readonly frontends: () => Iterable<Frontend>
  /** Reads the kernel's counters. */
  readonly read: () => Promise<Packets>
  readonly log: Log
}

/**
 * Adds up the kernel's counters per service port. The counter of an element begins at 0 again when the element, or the table, is
 * made anew; a total does not fall because of that, as long as its service port exists.
 */
export class ConnectionCounts {
  readonly #options: ConnectionCountsOptions
  #packets = new Map<string, number>()
  #totals = new Map<string, ServicePortConnections>()
  #reading: Promise<readonly ServicePortConnections[]> | undefined

  constructor(options: ConnectionCountsOptions) {
    this.#options = options
  }

  /** Never rejects: if the counters cannot be read, the last totals are returned. Two calls at once share one answer. */
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
      this.#options.log.warn('New connections cannot be read; the metrics show what was read before', {
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
