import { askBulk } from './bulk.js'
import { serve } from './echo.js'
import type { Outcome, Place, ProbeRequest } from './protocol.js'
import { relay } from './relay.js'
import { answerRequests } from './requests.js'
import { SctpConversation } from './sctp-probe.js'
import { TcpConversation } from './tcp-probe.js'
import { UdpConversation } from './udp-probe.js'

interface Conversation {
  ask(timeoutMs: number, sendOnce?: boolean): Promise<Outcome>
  close(): void
}

function conversation(to: Place): Conversation {
  if (to.protocol === 'SCTP') return new SctpConversation(to)
  return to.protocol === 'TCP' ? new TcpConversation(to) : new UdpConversation(to)
}

async function askOnce(to: Place, timeoutMs: number, sendOnce = false): Promise<Outcome> {
  const once = conversation(to)
  try {
    return await once.ask(timeoutMs, sendOnce)
  } finally {
    once.close()
  }
}

/**
 * What every agent can do: serve, ask, carry connections out of the namespace.
 * @param name what its servers call themselves
 */
export function agentMethods(name: string) {
  const flows = new Map<string, Conversation>()
  let loop: { asked: number; failed: Outcome[]; isOver: boolean } | undefined

  return {
    /** Begins to answer at these places. */
    async serve(places: readonly Place[]): Promise<void> {
      await Promise.all(places.map((place) => serve(name, place)))
    },

    async probe({ to, timeoutMs, flow, keepGoing, sendOnce, bytes }: ProbeRequest): Promise<Outcome> {
      if (bytes !== undefined) return askBulk(to, bytes, timeoutMs)
      if (flow === undefined) return askOnce(to, timeoutMs, sendOnce)
      const open = flows.get(flow) ?? conversation(to)
      flows.set(flow, open)
      try {
        return await open.ask(timeoutMs)
      } finally {
        if (keepGoing && open instanceof UdpConversation) open.keepGoing()
      }
    },

    /** Asks again and again, each time anew, until `endLoop`. */
    startLoop(to: Place, timeoutMs: number): void {
      const own = { asked: 0, failed: [] as Outcome[], isOver: false }
      loop = own
      const goOn = async () => {
        while (!own.isOver) {
          const seen = await askOnce(to, timeoutMs)
          own.asked++
          if (seen.outcome !== 'reached') own.failed.push(seen)
        }
      }
      void goOn()
    },

    endLoop(): { asked: number; failed: Outcome[] } {
      const { asked = 0, failed = [] } = loop ?? {}
      if (loop) loop.isOver = true
      return { asked, failed }
    },

    /** Carries every connection to a place to the Unix socket at `path`. */
    relay: (at: Place, path: string): Promise<void> => relay(at, path),
  }
}

export type AgentMethods = ReturnType<typeof agentMethods>

/** Lives in one network namespace of a lab and does what it is asked to. */
export const runAgent = (name = 'agent'): void => answerRequests(agentMethods(name))
