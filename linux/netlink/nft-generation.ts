import { KpngError } from '@kpng/api'
import { MessageBuffer } from './buffer.js'
import { attributesOf, findAttribute } from './messages.js'
import type { NetlinkSocket } from './socket.js'

// Netfilter's subsystem number of nftables, and numbers of its messages.
const NFNL_SUBSYS_NFTABLES = 10
const NEWGEN = (NFNL_SUBSYS_NFTABLES << 8) | 15
const GETGEN = (NFNL_SUBSYS_NFTABLES << 8) | 16
const GENERATION_ID = 1

/**
 * The number of transactions on all nftables tables of this network namespace, by any program. A 32-bit number that wraps around.
 * @param socket of NETLINK_NETFILTER
 */
export async function readNftGeneration(socket: NetlinkSocket): Promise<number> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(GETGEN, 0, 0)
  request.end()
  await socket.send(request.bytes)
  for (const message of socket.receive()) {
    const id = message.type === NEWGEN && findAttribute(attributesOf(message), GENERATION_ID)
    if (id) return id.readUInt32BE(0)
  }
  throw new KpngError('unavailable', 'The kernel did not return the generation of its tables. kpng tries again later.')
}
