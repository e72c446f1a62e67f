import { KpngError } from '@kpng/api'
import { errnoText, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR } from './constants.js'
import { acknowledgementIn, hostOrder, type Message } from './messages.js'
import type { NetlinkSocket } from './socket.js'

/**
 * The event loop gets a turn after this time. A number of datagrams would not do: for each datagram the kernel walks the set from its
 * beginning, which takes milliseconds if there are 100,000 elements.
 */
const atOnceMs = 5

/**
 * Sends a request for a dump and passes its messages to `take`. Resolves with false if the listed objects changed meanwhile, so that
 * the list may be incomplete.
 *
 * A dump can fail at once (NLMSG_ERROR) or after a part of the list (an errno in NLMSG_DONE). `take` gets that message too, so that it
 * can throw an error that names the object. If it does not throw, the dump rejects.
 * @param aside whether the kernel may search for a long time before it finds something to list
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
      // An answer to an earlier request whose reader gave up.
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
  new KpngError('unavailable', `The kernel did not finish a list: ${errnoText(errno)}. kpng tries again later.`)
