import { acknowledgementIn, type Message, type MessageBuffer } from '@kpng/linux'
import type { Family } from '../address.js'
import { protocolNumbers } from '../element.js'
import { conntrackAttribute, tupleAttribute, tupleProtocolAttribute } from './constants.js'

// Lets the kernel choose which connections it lists: reading 100,000 of them takes half a second, walking past them a hundredth.
// Kernels before 5.8 do not know filters and list everything, so whoever reads the list looks at each flow nevertheless.

/** UDP flows to an IPv4 address, where one is given, and to a port, where one is given. Both are bytes. */
export interface FlowFilter {
  readonly address?: string
  readonly port?: string
}

const allUdp: FlowFilter = {}

const IP_DESTINATION = 2
const FILTER_ORIGINAL = 1
const filterByDestination = 1 << 1
const filterByProtocol = 1 << 3
const filterByDestinationPort = 1 << 5

/** Each list takes the kernel a walk through the whole table; beyond so many, one list of all UDP flows is less. */
const maxLists = 8

/**
 * Filters under which all flows to these keys are listed.
 * @param keys service keys and node-port keys
 */
export function filtersFor(family: Family, keys: readonly string[]): FlowFilter[] {
  const filters = new Map<string, FlowFilter>()
  for (const key of keys) {
    // Kernels up to 6.18 at least list, for an IPv6 address, the flows to all other addresses.
    const address = family === 'ip' ? key.slice(0, -8) : ''
    const port = key.slice(-4, -2)
    filters.set(address + port, address === '' ? { port } : { address, port })
  }
  return filters.size > maxLists ? [allUdp] : [...filters.values()]
}

export function writeFilter(buffer: MessageBuffer, { address, port }: FlowFilter): void {
  buffer.nested(conntrackAttribute.ORIGINAL, () => {
    if (address !== undefined) buffer.nested(tupleAttribute.IP, () => buffer.raw(IP_DESTINATION, address))
    buffer.nested(tupleAttribute.PROTOCOL, () => {
      buffer.u8(tupleProtocolAttribute.NUMBER, protocolNumbers.udp)
      if (port !== undefined) buffer.raw(tupleProtocolAttribute.DESTINATION_PORT, port)
    })
  })
  const fields =
    filterByProtocol |
    (address === undefined ? 0 : filterByDestination) |
    (port === undefined ? 0 : filterByDestinationPort)
  buffer.nested(conntrackAttribute.FILTER, () => buffer.hostU32(FILTER_ORIGINAL, fields))
}

const EINVAL = 22
const EOPNOTSUPP = 95

/** Whether a kernel says that it does not take such a filter. */
export function refusesFilter(message: Message): boolean {
  const errno = acknowledgementIn(message)?.errno
  return errno === EINVAL || errno === EOPNOTSUPP
}
