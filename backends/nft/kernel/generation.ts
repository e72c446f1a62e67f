import { KpngError } from '@kpng/api'
import { attributesOf, findAttribute, MessageBuffer, type NetlinkSocket } from '@kpng/linux'
import { nftMessage } from './constants.js'
import { nftType } from './set-elements.js'

const GENERATION_ID = 1

/** The number of transactions on all nftables tables, ours and others'. A 32-bit number that wraps around. */
export async function readGeneration(socket: NetlinkSocket): Promise<number> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(nftType(nftMessage.GETGEN), 0, 0)
  request.end()
  await socket.send(request.bytes)
  for (const message of socket.receive()) {
    const id = message.type === nftType(nftMessage.NEWGEN) && findAttribute(attributesOf(message), GENERATION_ID)
    if (id) return id.readUInt32BE(0)
  }
  throw new KpngError('unavailable', 'The kernel did not return the generation of its tables. kpng tries again later.')
}
