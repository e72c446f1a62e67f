import { createInterface } from 'node:readline'
import { askBulk } from './bulk.js'
import { serve } from './echo.js'
import type { Answer, Hello, Outcome, Place, Request } from './protocol.js'
import { relay } from './relay.js'
import { configureNamespace } from './system.js'
import { TcpConversation } from './tcp-probe.js'
import { UdpConversation } from './udp-probe.js'

type Flows = Map<string, TcpConversation | UdpConversation>

const say = (message: Answer | Hello) => process.stdout.write(`${JSON.stringify(message)}\n`)

const conversation = (to: Place) => (to.protocol === 'TCP' ? new TcpConversation(to) : new UdpConversation(to))

async function probe(to: Place, timeoutMs: number, flow: string | undefined, flows: Flows): Promise<Outcome> {
  if (flow === undefined) {
    const once = conversation(to)
    try {
      return await once.ask(timeoutMs)
    } finally {
      once.close()
    }
  }
  const open = flows.get(flow) ?? conversation(to)
  flows.set(flow, open)
  try {
    return await open.ask(timeoutMs)
  } finally {
    if (open instanceof UdpConversation) open.keepGoing()
  }
}

async function handle(request: Request, name: string, flows: Flows): Promise<Outcome | null> {
  switch (request.op) {
    case 'serve':
      await Promise.all(request.places.map((place) => serve(name, place)))
      return null
    case 'probe':
      if (request.bytes !== undefined) return askBulk(request.to, request.bytes)
      return probe(request.to, request.timeoutMs, request.flow, flows)
    case 'relay':
      await relay(request.at, request.path)
      return null
  }
}

/**
 * Lives in one network namespace of the lab: serves, asks, relays, as the kit says on standard input. Ends when that does, so it
 * never outlives the kit.
 */
export function runAgent(name = 'agent', role = 'host'): void {
  const flows: Flows = new Map()
  configureNamespace(role)
  process.stdout.on('error', () => process.exit(0))
  // Signals of the terminal are the kit's to act on: it needs its agents until it has cleaned up.
  process.on('SIGINT', () => {})
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      const { id, ...request } = JSON.parse(line) as Request & { id: number }
      handle(request, name, flows).then(
        (result) => say({ id, result }),
        (error: Error) => say({ id, error: error.message }),
      )
    })
    .on('close', () => process.exit(0))
  say({ ready: true })
}
