import type { localv1 } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import { protocolNumbers, protocolOf } from './element.js'
import type { SetPath } from './names.js'

/** How many connections a service port was asked for. */
export interface ServicePortConnections {
  readonly namespace: string
  readonly service: string
  /** The name of the port; '' where it has none. */
  readonly port: string
  readonly connections: number
}

/** First packets by key, as one set of the kernel counts them. */
export type Packets = ReadonlyMap<string, number>

/** Who owns a key of a set: `namespace/name`. */
export type OwnerOf = (path: SetPath, key: string) => string | undefined

/**
 * Adds up the kernel's counters by service port. A key's counter begins at 0 again when the key, or the table, is made anew; a
 * total does not fall for that, as long as its service port is there.
 */
export class ConnectionTotals {
  #packets = new Map<string, number>()
  #totals = new Map<string, ServicePortConnections>()

  update(
    read: ReadonlyMap<SetPath, Packets>,
    services: NodeView['services'],
    ownerOf: OwnerOf,
  ): ServicePortConnections[] {
    const packets = new Map<string, number>()
    const totals = new Map<string, ServicePortConnections>()
    for (const [path, counted] of read) {
      for (const [key, count] of counted) {
        const id = `${path} ${key}`
        const service = services.get(ownerOf(path, key) ?? '')?.service
        const port = service && portOf(service, key)
        // What came or went after the last sync has no name yet, or no longer.
        if (!port) continue
        packets.set(id, count)
        const name = `${service.namespace}/${service.name}:${port.name}`
        const known = totals.get(name) ?? this.#totals.get(name)
        totals.set(name, {
          ...{ namespace: service.namespace, service: service.name, port: port.name },
          connections: (known?.connections ?? 0) + increase(this.#packets.get(id), count),
        })
      }
    }
    this.#packets = packets
    this.#totals = totals
    return [...totals.values()]
  }
}

const increase = (before = 0, now: number): number => (now >= before ? now - before : now)

/** Node-port keys have no address. */
export const isNodePortKey = (key: string): boolean => key.length === 8

/** The port that a service key or node-port key of a service is about. */
function portOf({ ports }: localv1.Service, key: string): localv1.PortMapping | undefined {
  const number = (key.charCodeAt(key.length - 4) << 8) | key.charCodeAt(key.length - 3)
  return ports.find(({ protocol, port, nodePort }) => {
    const name = protocolOf(protocol)
    const own = isNodePortKey(key) ? nodePort : port
    return own === number && name !== undefined && protocolNumbers[name] === key.charCodeAt(key.length - 8)
  })
}
