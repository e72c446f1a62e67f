import { NLM_F_DUMP_INTR, NLMSG_DONE } from './constants.js'
import type { Message } from './messages.js'
import type { NetlinkSocket } from './socket.js'

/**
 * After so long the process may do something else. Not after so many datagrams: for each of them the kernel walks through a set
 * from its beginning, which takes milliseconds where there are 100,000 elements.
 */
const atOnceMs = 5

/**
 * Sends a request for a dump and hands over its messages. Resolves with false when what was listed changed meanwhile, so that
 * the list may not be whole.
 * @param aside whether the kernel may look for long until it finds something to list
 */
export async function dump(
  socket: NetlinkSocket,
  request: Buffer,
  take: (message: Message) => void,
  aside = false,
): Promise<boolean> {
  await socket.send(request, aside)
  let isWhole = true
  let sinceMs = performance.now()
  for (;;) {
    const bytes = socket.receiveOnce()
    let any = false
    for (const message of bytes) {
      any = true
      if (message.flags & NLM_F_DUMP_INTR) isWhole = false
      if (message.type === NLMSG_DONE) return isWhole
      take(message)
    }
    if (!any) return false
    if (performance.now() - sinceMs < atOnceMs) continue
    await new Promise((resolve) => setImmediate(resolve))
    sinceMs = performance.now()
  }
}
