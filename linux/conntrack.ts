import { type Family, KpngError } from '@kpng/api'
import { rightsAdvice } from './capabilities.js'
import { type Flow, type FlowName, type FlowProtocol, flowIn, nameOf, writeFilter } from './conntrack-messages.js'
import { loadLibc } from './libc.js'
import { MessageBuffer } from './netlink/buffer.js'
import {
  EINVAL,
  ENOENT,
  EOPNOTSUPP,
  EPERM,
  errnoText,
  NETLINK_NETFILTER,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NLM_F_ACK,
  NLM_F_DUMP,
} from './netlink/constants.js'
import { dump } from './netlink/dump.js'
import { acknowledgementIn, type Message } from './netlink/messages.js'
import { NetlinkSocket } from './netlink/socket.js'

export type { Flow, FlowProtocol } from './conntrack-messages.js'

// The kernel's table of connections, in the network namespace of this process.

/** Which flows are looked at. */
export interface FlowSelection {
  readonly family: Family
  readonly protocol: FlowProtocol
  /** Only flows that the client sent to one of these ports. Default: all ports. */
  readonly ports?: readonly number[]
}

const NFNL_SUBSYS_CTNETLINK = 1
const typeOf = (message: number): number => (NFNL_SUBSYS_CTNETLINK << 8) | message
const GET = typeOf(1)
const DELETE = typeOf(2)

const protocolFamily: Readonly<Record<Family, number>> = { IPv4: NFPROTO_IPV4, IPv6: NFPROTO_IPV6 }

/** Each list makes the kernel walk the whole table. With more ports than this, one list of the whole protocol costs less. */
const maxLists = 8

/** The event loop gets a turn after this many deletions. */
const deletionsAtOnce = 100

/**
 * The flows of a selection. Reading a long table does not block the process. Rejects with a `KpngError` if the table cannot be read
 * here.
 */
export async function listFlows(selection: FlowSelection): Promise<Flow[]> {
  const flows: Flow[] = []
  await withSocket((socket) => readFlows(socket, selection, (flow) => void flows.push(flow)))
  return flows
}

/** Deletes the stale flows of a selection. Resolves with their number; a flow that ended meanwhile is not counted. */
export function deleteFlows(selection: FlowSelection, isStale: (flow: Flow) => boolean): Promise<number> {
  return withSocket(async (socket) => {
    const stale: FlowName[] = []
    await readFlows(socket, selection, (flow, message) => {
      if (isStale(flow)) stale.push(nameOf(message))
    })
    let deleted = 0
    for (const [index, name] of stale.entries()) {
      if (await deleteFlow(socket, selection.family, name)) deleted++
      if (index % deletionsAtOnce === deletionsAtOnce - 1) await new Promise((resolve) => setImmediate(resolve))
    }
    return deleted
  })
}

async function withSocket<Result>(work: (socket: NetlinkSocket) => Promise<Result>): Promise<Result> {
  const socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
  try {
    return await work(socket)
  } finally {
    socket.close()
  }
}

type Take = (flow: Flow, message: Message) => void

async function readFlows(socket: NetlinkSocket, selection: FlowSelection, take: Take): Promise<void> {
  const ports = new Set(selection.ports)
  if (selection.ports === undefined) return readList(socket, selection, undefined, take)
  if (ports.size <= maxLists) {
    for (const port of ports) await readList(socket, selection, port, take)
  } else {
    await readList(socket, selection, undefined, (flow, message) => {
      if (ports.has(flow.destinationPort)) take(flow, message)
    })
  }
}

/**
 * Reads one list, filtered by the kernel. Reading 100,000 flows takes half a second; skipping them in the kernel takes a hundredth of
 * that. Kernels before 5.8 ignore filters and others may refuse them, so each flow is checked here too.
 */
async function readList(
  socket: NetlinkSocket,
  { family, protocol }: FlowSelection,
  port: number | undefined,
  take: Take,
  isFiltered = true,
): Promise<void> {
  const request = new MessageBuffer(isFiltered ? 1 : 2)
  request.beginNetfilter(GET, NLM_F_DUMP, protocolFamily[family])
  if (isFiltered) writeFilter(request, protocol, port)
  request.end()
  let errno = 0
  const read = (message: Message) => {
    errno = acknowledgementIn(message)?.errno ?? 0
    const flow = errno === 0 ? flowIn(message, family, protocol) : undefined
    if (flow && (port === undefined || flow.destinationPort === port)) take(flow, message)
  }
  try {
    await dump(socket, request.bytes, read, true)
  } catch (error) {
    if (errno === 0) throw error
    if (!isFiltered || (errno !== EINVAL && errno !== EOPNOTSUPP)) throw failure('list', errno)
    await readList(socket, { family, protocol }, port, take, false)
  }
}

/** Whether there was something to delete. */
async function deleteFlow(socket: NetlinkSocket, family: Family, name: FlowName): Promise<boolean> {
  const request = new MessageBuffer(3)
  request.beginNetfilter(DELETE, NLM_F_ACK, protocolFamily[family])
  for (const [attribute, value] of name) request.raw(attribute, value)
  request.end()
  await socket.send(request.bytes)
  for (const message of socket.receive()) {
    const errno = acknowledgementIn(message)?.errno
    if (errno === 0) return true
    // The flow ended meanwhile.
    if (errno === ENOENT) return false
    if (errno !== undefined) throw failure('delete', errno)
  }
  throw new KpngError('unavailable', 'The kernel did not answer a request to delete a connection.')
}

function failure(what: 'list' | 'delete', errno: number): KpngError {
  const next =
    errno === EPERM
      ? rightsAdvice('CAP_NET_ADMIN')
      : errno === EINVAL || errno === EOPNOTSUPP
        ? 'Load the module nf_conntrack_netlink.'
        : 'Check that the module nf_conntrack_netlink is loaded.'
  return new KpngError('unavailable', `The kernel does not ${what} connections: ${errnoText(errno)}. ${next}`)
}
