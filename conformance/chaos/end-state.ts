import type { Family } from '@kpng/api'
import { clusterIp, type Host, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Lab } from '../lab/lab.js'
import type { ChaosCluster } from './cluster.js'

/** With four endpoints, one is missed by all of these requests once in 10⁸ runs. */
const tries = 64
const timeoutMs = 10_000

/** Where requests to each Service end up, when nothing changes any more. What is not as the objects say is returned, as sentences. */
export async function wrongServers(lab: Lab, cluster: ChaosCluster, families: readonly Family[]): Promise<string[]> {
  const wrong: string[] = []
  for (const { name, number, current } of cluster.services) {
    for (const family of families) {
      const places: [Host, string, number][] = [
        ['pod-a', clusterIp(number)[family], 80],
        ['outside', nodeA[family], nodePort(number)],
        ['outside', loadBalancerIp(number)[family], 80],
      ]
      for (const [client, ip, port] of places) {
        const to = { protocol: 'TCP', ip, port } as const
        const ask = () => lab.agents[client].call('probe', { to, timeoutMs })
        const outcomes = await Promise.all(Array.from({ length: tries }, ask))
        const seen = new Set(outcomes.map((each) => (each.outcome === 'reached' ? each.server : each.outcome)))
        const [expected, got] = [[...current].sort().join(' '), [...seen].sort().join(' ')]
        if (expected !== got)
          wrong.push(`At the end, ${client} reaches ${got} at ${name} (${ip} port ${port}), not ${expected}.`)
      }
    }
  }
  return wrong
}

/** The rules in the kernel in an order of their own, without what counts, so that two of them can be compared. */
export async function rulesIn(lab: Pick<Lab, 'run'>): Promise<string[]> {
  // One family at a time: nft prints the targets of iptables only for the family that it comes to first.
  const script = `for family in ip ip6 inet arp bridge netdev; do nft -s list ruleset $family || true; done
for program in iptables-legacy-save ip6tables-legacy-save; do
  if command -v $program > /dev/null; then $program || true; fi
done
`
  const text = await lab.run('node-a', 'sh', [], { input: script })
  return (
    text
      .split('\n')
      .flatMap((each) => each.split(/(?<=[,}])\s*/))
      .map((each) =>
        each
          .replace(/^\s*elements = \{/, '')
          .replace(/counter packets \d+ bytes \d+|\[\d+:\d+\]|expires \S+/g, '')
          .trim(),
      )
      .map((each) => each.replace(/[,}]$/, '').trim())
      // Which endpoint has which number, and so which share of the packets it is compared with, depends on the order in which they came.
      .map((each) =>
        each.replace(/ \. \d+ : /, ' . n : ').replace(/ --probability \S+| -m statistic --mode random/g, ''),
      )
      // Tables of iptables are there from the first time that somebody looks at them.
      .filter((each) => !/^$|^[#*]|^COMMIT|^:\S+ ACCEPT/.test(each))
      .sort()
  )
}
