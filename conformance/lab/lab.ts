import { addressOf, type Host, hosts, podPorts } from '../addresses.js'
import type { Place } from '../agent/protocol.js'
import { Agent } from './agent.js'
import { ipBatch, ipBatchNow } from './ip.js'
import { endProcessesIn, endProcessesInNow, namespaceName, sweepLeftovers } from './leftovers.js'
import { requireLab } from './requirements.js'
import { hostLines, linkLines } from './topology.js'

/** A running lab: namespaces that are connected, and an agent in each of them. */
export interface Lab {
  readonly agents: Readonly<Record<Host, Agent>>
  /** The network namespace of a host, as `ip netns` knows it. */
  namespaceOf(host: Host): string
  /** Ends the agents and everything else in the namespaces, and removes them. May be called twice. */
  close(): Promise<void>
}

let count = 0

/** Makes a lab. Needs root and `ip`; what is missing is in the error. A lab that could not be finished is removed again. */
export async function startLab(agentCommand?: readonly string[]): Promise<Lab> {
  await requireLab()
  await sweepLeftovers()
  const number = ++count
  const namespaceOf = (host: Host) => namespaceName(process.pid, number, host)
  const agents = new Map<Host, Agent>()
  const remove = () => {
    // A namespace without a name lives on with whatever runs in it, and nobody finds that again.
    for (const host of hosts) endProcessesInNow(namespaceOf(host))
    ipBatchNow(hosts.map((host) => `netns delete ${namespaceOf(host)}`))
  }
  // Whatever way the process ends, short of being killed, the namespaces go; after a kill the next lab sweeps them.
  process.once('exit', remove)
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    await Promise.all([...agents.values()].map((agent) => agent.stop()))
    await Promise.all(hosts.map((host) => endProcessesIn(namespaceOf(host))))
    process.off('exit', remove)
    remove()
  }
  try {
    await ipBatch(
      undefined,
      hosts.map((host) => `netns add ${namespaceOf(host)}`),
    )
    const starts = hosts.map(async (host) => {
      agents.set(host, await Agent.start(host, namespaceOf(host), roleOf(host), agentCommand))
    })
    const failed = (await Promise.allSettled(starts)).find((start) => start.status === 'rejected')
    if (failed) throw failed.reason
    await ipBatch(undefined, linkLines(namespaceOf))
    await Promise.all(hosts.map((host) => ipBatch(namespaceOf(host), hostLines(host))))
    const lab: Lab = { agents: Object.fromEntries(agents) as Record<Host, Agent>, namespaceOf, close }
    await Promise.all([...agents].map(([host, agent]) => agent.ask({ op: 'serve', places: servedBy(host) })))
    return lab
  } catch (error) {
    await close()
    throw error
  }
}

const roleOf = (host: Host) => (host.startsWith('node-') ? 'router' : host === 'gateway' ? 'gateway' : 'host')

/** Pods serve at any address; a node only at its own, or a node port that the proxy missed would be answered at any of them. */
function servedBy(host: Host): Place[] {
  if (['outside', 'gateway', 'node-b', 'pod-a', 'pod-b'].includes(host)) return []
  const { v4, v6 } = host === 'node-a' ? addressOf[host] : { v4: '0.0.0.0', v6: '::' }
  return podPorts.flatMap((port) =>
    (['TCP', 'UDP'] as const).flatMap((protocol) => [v4, v6].map((ip) => ({ protocol, ip, port }))),
  )
}
