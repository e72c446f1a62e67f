import { KpngError } from '@kpng/api'
import { loadLibc } from './libc.js'
import { MessageBuffer } from './netlink/buffer.js'
import { EBUSY, EEXIST, ENOENT, errnoText, NETLINK_NETFILTER, NLM_F_ACK, NLM_F_CREATE } from './netlink/constants.js'
import { acknowledgementIn, attributesOf } from './netlink/messages.js'
import { NetlinkSocket } from './netlink/socket.js'

// Packet counters with names (nfacct), in the network namespace of this process. Rules of iptables count into them.

const NFNL_SUBSYS_ACCT = 7
const typeOf = (message: number): number => (NFNL_SUBSYS_ACCT << 8) | message
const NEW = typeOf(0)
const GET = typeOf(1)
const DELETE = typeOf(3)
const NFACCT_NAME = 1
const NFACCT_PKTS = 2

/** Makes a counter, unless it is there. Rejects if the kernel has no such counters. */
export const makePacketCounter = (name: string): Promise<unknown> =>
  ask('make', NEW, NLM_F_ACK | NLM_F_CREATE, name, [EEXIST, EBUSY])

/** Undefined if there is no such counter. */
export const readPacketCounter = (name: string): Promise<number | undefined> =>
  ask('read', GET, NLM_F_ACK, name, [ENOENT])

/** A counter that rules use stays. */
export const deletePacketCounter = (name: string): Promise<unknown> =>
  ask('delete', DELETE, NLM_F_ACK, name, [ENOENT, EBUSY])

/** @param allowed the errors that are no failure */
async function ask(
  what: string,
  type: number,
  flags: number,
  name: string,
  allowed: readonly number[],
): Promise<number | undefined> {
  const socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
  try {
    const request = new MessageBuffer(1)
    request.beginNetfilter(type, flags, 0)
    request.text(NFACCT_NAME, name)
    request.end()
    await socket.send(request.bytes)
    let packets: number | undefined
    for (const message of socket.receive()) {
      const errno = acknowledgementIn(message)?.errno
      if (errno === undefined) {
        for (const { type: attribute, value } of attributesOf(message))
          if (attribute === NFACCT_PKTS) packets = Number(value.readBigUInt64BE(0))
      } else if (errno !== 0 && !allowed.includes(errno)) {
        throw new KpngError(
          'unavailable',
          `The kernel does not ${what} the packet counter ${name}: ${errnoText(errno)}. Load the module nfnetlink_acct.`,
        )
      }
    }
    return packets
  } finally {
    socket.close()
  }
}
