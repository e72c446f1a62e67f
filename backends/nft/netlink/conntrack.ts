import { KpngError } from '@kpng/api'
import {
  acknowledgementIn,
  attributesIn,
  attributesOf,
  dump,
  errnoText,
  findAttribute,
  type Libc,
  type Message,
  MessageBuffer,
  NETLINK_NETFILTER,
  NetlinkSocket,
  NLM_F_ACK,
  NLM_F_DUMP,
} from '@kpng/linux'
import type { Family } from '../address.js'
import { protocolNumbers } from '../element.js'
import type { Flow } from '../stale-flows.js'
import { type FlowFilter, filtersFor, refusesFilter, writeFilter } from './conntrack-filter.js'
import {
  conntrackAttribute,
  conntrackMessage,
  NFNL_SUBSYS_CTNETLINK,
  tupleAttribute,
  tupleProtocolAttribute,
} from './constants.js'
import { protocolFamily } from './set-elements.js'

// The kernel's table of connections.

const destinationChanged = 1 << 5

const ENOENT = 2

/** Enough to name a flow to the kernel: the attributes under which it was listed. */
type FlowName = readonly (readonly [type: number, value: string])[]

const type = (message: number): number => (NFNL_SUBSYS_CTNETLINK << 8) | message

/** So many are deleted before the process may do something else. */
const deletionsAtOnce = 100

/**
 * Deletes the UDP flows of a family that are stale. Resolves with their number.
 * @param keys service keys and node-port keys that such flows are to
 */
export async function deleteUdpFlows(
  libc: Libc,
  family: Family,
  keys: readonly string[],
  isStale: (flow: Flow) => boolean,
): Promise<number> {
  const socket = new NetlinkSocket(libc, NETLINK_NETFILTER)
  try {
    const stale = new Map<string, FlowName>()
    for (const filter of filtersFor(family, keys)) {
      for (const name of await staleFlows(socket, family, filter, isStale)) stale.set(name.join(), name)
    }
    let deleted = 0
    for (const name of stale.values()) {
      await deleteFlow(socket, family, name)
      if (++deleted % deletionsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return deleted
  } finally {
    socket.close()
  }
}

async function staleFlows(
  socket: NetlinkSocket,
  family: Family,
  filter: FlowFilter | undefined,
  isStale: (flow: Flow) => boolean,
): Promise<FlowName[]> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(type(conntrackMessage.GET), NLM_F_DUMP, protocolFamily(family))
  if (filter) writeFilter(request, filter)
  request.end()
  const stale: FlowName[] = []
  let isRefused = false
  const take = (message: Message) => {
    isRefused ||= filter !== undefined && refusesFilter(message)
    if (isRefused) return
    throwOnFailure(message, 'Connections cannot be listed')
    const flow = flowIn(message, family)
    if (flow && isStale(flow)) stale.push(nameOf(message))
  }
  await dump(socket, request.bytes, take, true)
  return isRefused ? await staleFlows(socket, family, undefined, isStale) : stale
}

async function deleteFlow(socket: NetlinkSocket, family: Family, name: FlowName): Promise<void> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(type(conntrackMessage.DELETE), NLM_F_ACK, protocolFamily(family))
  for (const [attribute, value] of name) request.raw(attribute, value)
  request.end()
  await socket.send(request.bytes)
  for (const message of socket.receive()) throwOnFailure(message, 'A stale UDP flow cannot be deleted')
}

function throwOnFailure(message: Message, what: string): void {
  const answer = acknowledgementIn(message)
  // A flow that ended by itself meanwhile is no failure.
  if (!answer || answer.errno === 0 || answer.errno === ENOENT) return
  throw new KpngError('refused', `${what}: ${errnoText(answer.errno)}.`)
}

const NESTED = 0x8000

function nameOf(message: Message): FlowName {
  const name: [number, string][] = []
  for (const { type, value } of attributesOf(message)) {
    if (type === conntrackAttribute.ORIGINAL) name.push([type | NESTED, value.toString('latin1')])
    else if (type === conntrackAttribute.ZONE || type === conntrackAttribute.ID)
      name.push([type, value.toString('latin1')])
  }
  return name
}

function flowIn(message: Message, family: Family): Flow | undefined {
  let original: Tuple | undefined
  let reply: Tuple | undefined
  let status = 0
  for (const { type, value } of attributesOf(message)) {
    if (type === conntrackAttribute.ORIGINAL) original = tupleIn(value, family)
    else if (type === conntrackAttribute.REPLY) reply = tupleIn(value, family)
    else if (type === conntrackAttribute.STATUS) status = value.readUInt32BE(0)
  }
  if (!original || !reply) return undefined
  return {
    family,
    destination: original.destination,
    destinationPort: original.destinationPort,
    answeredBy: reply.source,
    answeredByPort: reply.sourcePort,
    isRedirected: (status & destinationChanged) !== 0,
  }
}

interface Tuple {
  readonly source: string
  readonly destination: string
  readonly sourcePort: number
  readonly destinationPort: number
}

/** Undefined when it is not UDP. */
function tupleIn(bytes: Buffer, family: Family): Tuple | undefined {
  const protocol = findAttribute(attributesIn(bytes), tupleAttribute.PROTOCOL)
  const ip = findAttribute(attributesIn(bytes), tupleAttribute.IP)
  if (!protocol || !ip) return undefined
  if (findAttribute(attributesIn(protocol), tupleProtocolAttribute.NUMBER)?.[0] !== protocolNumbers.udp)
    return undefined
  const [sourceType, destinationType] = family === 'ip' ? [1, 2] : [3, 4]
  const address = (type: number) => findAttribute(attributesIn(ip), type)?.toString('latin1') ?? ''
  const port = (type: number) => findAttribute(attributesIn(protocol), type)?.readUInt16BE(0) ?? 0
  return {
    source: address(sourceType),
    destination: address(destinationType),
    sourcePort: port(tupleProtocolAttribute.SOURCE_PORT),
    destinationPort: port(tupleProtocolAttribute.DESTINATION_PORT),
  }
}
