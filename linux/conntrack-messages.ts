import { type Family, ipOfBytes } from '@kpng/api'
import type { MessageBuffer } from './netlink/buffer.js'
import { NLA_F_NESTED } from './netlink/constants.js'
import { attributesOf, forEachAttribute, type Message, netfilterHeaderLength } from './netlink/messages.js'

// Connections in netlink messages (linux/netfilter/nfnetlink_conntrack.h).

export type FlowProtocol = 'tcp' | 'udp' | 'sctp'

/** A connection in the kernel's connection table. Addresses are canonical texts. */
export interface Flow {
  readonly family: Family
  readonly protocol: FlowProtocol
  /** The client. */
  readonly source: string
  readonly sourcePort: number
  /** Where the client sent to. */
  readonly destination: string
  readonly destinationPort: number
  /** The address that answers. It differs from the destination if the flow was redirected. */
  readonly answeredBy: string
  readonly answeredByPort: number
  /** A rule changed the destination. */
  readonly isRedirected: boolean
}

const protocolNumbers: Readonly<Record<FlowProtocol, number>> = { tcp: 6, udp: 17, sctp: 132 }

const attribute = { ORIGINAL: 1, REPLY: 2, STATUS: 3, ID: 12, ZONE: 18, FILTER: 25 } as const
/** Parts of one direction of a flow, and parts of those. */
const tuple = { IP: 1, PROTOCOL: 2 } as const
const tupleProtocol = { NUMBER: 1, SOURCE_PORT: 2, DESTINATION_PORT: 3 } as const
const tupleAddresses: Readonly<Record<Family, { source: number; destination: number }>> = {
  IPv4: { source: 1, destination: 2 },
  IPv6: { source: 3, destination: 4 },
}

const FILTER_ORIGINAL = 1
const filterByProtocol = 1 << 3
const filterByDestinationPort = 1 << 5

const statusDestinationChanged = 1 << 5

/**
 * Makes the kernel list only the flows of a protocol, and of a port if one is given. There is no filter by address, because kernels
 * up to at least 6.18 invert it for IPv6: they list the flows to all other addresses.
 */
export function writeFilter(buffer: MessageBuffer, protocol: FlowProtocol, port: number | undefined): void {
  buffer.nested(attribute.ORIGINAL, () =>
    buffer.nested(tuple.PROTOCOL, () => {
      buffer.u8(tupleProtocol.NUMBER, protocolNumbers[protocol])
      if (port !== undefined) buffer.raw(tupleProtocol.DESTINATION_PORT, String.fromCharCode(port >> 8, port & 0xff))
    }),
  )
  const fields = filterByProtocol | (port === undefined ? 0 : filterByDestinationPort)
  buffer.nested(attribute.FILTER, () => buffer.hostU32(FILTER_ORIGINAL, fields))
}

/** Undefined if the flow is of another protocol. */
export function flowIn({ bytes }: Message, family: Family, protocol: FlowProtocol): Flow | undefined {
  let original: Direction | undefined
  let reply: Direction | undefined
  let status = 0
  forEachAttribute(bytes, netfilterHeaderLength, bytes.length, (type, from, to) => {
    if (type === attribute.ORIGINAL) original = directionIn(bytes, from, to, family)
    else if (type === attribute.REPLY) reply = directionIn(bytes, from, to, family)
    else if (type === attribute.STATUS && to >= from + 4) status = bytes.readUInt32BE(from)
  })
  return flowOf(family, protocol, original, reply, status)
}

function flowOf(
  family: Family,
  protocol: FlowProtocol,
  original: Direction | undefined,
  reply: Direction | undefined,
  status: number,
): Flow | undefined {
  if (!original || !reply || original.protocol !== protocolNumbers[protocol]) return undefined
  return {
    family,
    protocol,
    source: original.source,
    sourcePort: original.sourcePort,
    destination: original.destination,
    destinationPort: original.destinationPort,
    answeredBy: reply.source,
    answeredByPort: reply.sourcePort,
    isRedirected: (status & statusDestinationChanged) !== 0,
  }
}

interface Direction {
  source: string
  sourcePort: number
  destination: string
  destinationPort: number
  /** Its number. */
  protocol: number
}

function directionIn(bytes: Buffer, start: number, end: number, family: Family): Direction {
  const direction: Direction = { source: '', sourcePort: 0, destination: '', destinationPort: 0, protocol: 0 }
  const { source, destination } = tupleAddresses[family]
  forEachAttribute(bytes, start, end, (part, from, to) => {
    if (part === tuple.IP) {
      forEachAttribute(bytes, from, to, (type, at, until) => {
        if (type === source) direction.source = ipOfBytes(bytes.subarray(at, until))
        else if (type === destination) direction.destination = ipOfBytes(bytes.subarray(at, until))
      })
    } else if (part === tuple.PROTOCOL) {
      forEachAttribute(bytes, from, to, (type, at, until) => {
        if (type === tupleProtocol.NUMBER) direction.protocol = bytes[at] ?? 0
        else if (until < at + 2) return
        else if (type === tupleProtocol.SOURCE_PORT) direction.sourcePort = bytes.readUInt16BE(at)
        else if (type === tupleProtocol.DESTINATION_PORT) direction.destinationPort = bytes.readUInt16BE(at)
      })
    }
  })
  return direction
}

/** The attributes that identify a flow to the kernel, as bytes of its list entry. */
export type FlowName = readonly (readonly [type: number, value: string])[]

export function nameOf(message: Message): FlowName {
  const name: [number, string][] = []
  for (const { type, value } of attributesOf(message)) {
    if (type === attribute.ORIGINAL) name.push([type | NLA_F_NESTED, value.toString('latin1')])
    else if (type === attribute.ZONE || type === attribute.ID) name.push([type, value.toString('latin1')])
  }
  return name
}
