import { NLM_F_DUMP_INTR, NLMSG_DONE } from './constants.js'
import type { Message } from './messages.js'
import type { NetlinkSocket } from './socket.js'

/** After so many datagrams of a dump the process may do something else. */
const datagramsAtOnce = 32

/**
 * Sends a request for a dump and hands over its messages. Resolves with false when what was listed changed meanwhile, so that
 * the list may not be whole.
 */
export async function dump(socket: NetlinkSocket, request: Buffer, take: (message: Message) => void): Promise<boolean> {
  await socket.send(request)
  let isWhole = true
  for (let datagrams = 1; ; datagrams++) {
    const bytes = socket.receiveOnce()
    let any = false
    for (const message of bytes) {
      any = true
      if (message.flags & NLM_F_DUMP_INTR) isWhole = false
      if (message.type === NLMSG_DONE) return isWhole
      take(message)
    }
    if (!any) return false
    if (datagrams % datagramsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}
