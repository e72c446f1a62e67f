import { type Agent, Lab as NamespaceLab, type Place, type Protocol } from '@kpng/linux/testing'
import { addressOf, type Host, hosts, podPorts } from '../addresses.js'
import type { LabCgroups } from './cgroups.js'
import { topology } from './topology.js'

/** A running lab: namespaces that are connected, and an agent in each of them. */
export interface Lab extends Pick<NamespaceLab<Host>, 'namespaceOf' | 'ip' | 'run' | 'close'> {
  readonly agents: Readonly<Record<Host, Agent>>
}

/**
 * Makes the lab of the kit. Needs root and `ip`; what is missing is in the error. A lab that could not be finished is removed again.
 * @param agentCommand runs the agent. Default: the one of @kpng/linux.
 * @param protocols what the servers answer
 * @param cgroups where the agents run. Default: in the cgroup of this process.
 */
export async function startLab(
  agentCommand?: readonly string[],
  protocols: readonly Protocol[] = ['TCP', 'UDP'],
  cgroups?: LabCgroups,
): Promise<Lab> {
  const lab = await NamespaceLab.start(topology)
  try {
    const starting = hosts.map(async (host) => {
      const agent = await lab.startAgent(host, agentCommand)
      cgroups?.add(host, agent.pid)
      await agent.call('serve', servedBy(host, protocols))
      return [host, agent] as const
    })
    // All of them, so that none is left starting when the lab is removed because another one failed.
    const started = await Promise.allSettled(starting)
    const agents = started.map((start) => {
      if (start.status === 'rejected') throw start.reason
      return start.value
    })
    return Object.assign(lab, { agents: Object.fromEntries(agents) as Record<Host, Agent> })
  } catch (error) {
    await lab.close()
    throw error
  }
}

/** Pods serve at any address; a node only at its own, or a node port that the proxy missed would be answered at any of them. */
function servedBy(host: Host, protocols: readonly Protocol[]): Place[] {
  if (['outside', 'gateway', 'node-b', 'pod-a', 'pod-b'].includes(host)) return []
  const ips = Object.values(host === 'node-a' ? addressOf[host] : { IPv4: '0.0.0.0', IPv6: '::' })
  return podPorts.flatMap((port) => protocols.flatMap((protocol) => ips.map((ip) => ({ protocol, ip, port }))))
}
