import { KpngError } from '@kpng/api'
import { errnoText, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR } from './constants.js'
import { acknowledgementIn, hostOrder, type Message } from './messages.js'
import type { NetlinkSocket } from './socket.js'

/**
 * After this long the process may do something else. Not after a number of datagrams: for each of them the kernel walks through
 * a set from its beginning, which takes milliseconds if there are 100,000 elements.
 */
const atOnceMs = 5

/**
 * Sends a request for a dump and hands over its messages. Resolves with false if what was listed changed meanwhile, so that
 * the list may not be whole.
 *
 * A dump can fail at any point: at once (NLMSG_ERROR) or after some of the list (an errno in NLMSG_DONE). `take` is given that
 * message too, so that it can throw an error that names the thing; if it does not throw, the dump rejects.
 * @param aside whether the kernel may look for long until it finds something to list
 */
export async function dump(
  socket: NetlinkSocket,
  request: Buffer,
  take: (message: Message) => void,
  aside = false,
): Promise<boolean> {
  const sequence = hostOrder.readU32(request, 8)
  await socket.send(request, aside)
  let isWhole = true
  let sinceMs = performance.now()
  for (;;) {
    let any = false
    for (const message of socket.receiveOnce()) {
      any = true
      // Left from an earlier request whose reader gave up.
      if (message.sequence !== sequence) continue
      if (message.flags & NLM_F_DUMP_INTR) isWhole = false
      const errno = acknowledgementIn(message)?.errno ?? 0
      if (message.type === NLMSG_DONE && errno === 0) return isWhole
      take(message)
      if (message.type === NLMSG_DONE || message.type === NLMSG_ERROR) throw cutShort(errno)
    }
    if (!any) return false
    if (performance.now() - sinceMs < atOnceMs) continue
    await new Promise((resolve) => setImmediate(resolve))
    sinceMs = performance.now()
  }
}

const cutShort = (errno: number): KpngError =>
  new KpngError('unavailable', `The kernel did not finish a list: ${errnoText(errno)}. It is asked again later.`)
