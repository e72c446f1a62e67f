import { families } from '@kpng/api'
import { externalCidr, loadBalancerCidr, nodeA, serviceCidr } from '../addresses.js'
import type { Lab } from '../lab/lab.js'

// Faults that are laid over a right proxy, whatever it is: packets are changed on node-a before the proxy sees them. Only packets from hosts outside the
// node's cgroup have the addresses of Services there if the proxy works in sockets, which is enough to be seen.

export interface LaidOver {
  readonly name: string
  /** What is wrong with the proxy, as a sentence for people. */
  readonly title: string
  /** Rules of nftables for packets that come to node-a or leave it, from the start. */
  readonly rules?: readonly string[]
  /** The same, for so long after each change of objects. */
  readonly afterChange?: { readonly rules: readonly string[]; readonly seconds: number }
  /** The proxy is killed when the objects change for the second time. */
  readonly kills?: true
}

const setOf = (cidrs: readonly string[]): string => `{ ${cidrs.join(', ')} }`
const familyWord = { IPv4: 'ip', IPv6: 'ip6' } as const

/** A statement for packets to any of these addresses. */
const packetsTo = (match: string, ranges: readonly (typeof serviceCidr)[], statement: string): string[] =>
  families.map(
    (family) => `${match} ${familyWord[family]} daddr ${setOf(ranges.map((range) => range[family]))} ${statement}`,
  )

const newConnection = 'tcp flags & (syn | ack) == syn'
const oneIn = (count: number): string => `numgen random mod ${count} < 1`

export const laidOver: readonly LaidOver[] = [
  {
    name: 'resets',
    title: '1 in 100 connections to load-balancer and external IPs is reset',
    rules: packetsTo(newConnection, [loadBalancerCidr, externalCidr], `${oneIn(100)} reject with tcp reset`),
  },
  {
    name: 'drops',
    title: '1 in 50 connections and datagrams to Services is dropped',
    rules: [newConnection, 'meta l4proto udp'].flatMap((match) =>
      packetsTo(match, [serviceCidr, loadBalancerCidr, externalCidr, nodeA], `${oneIn(50)} drop`),
    ),
  },
  {
    name: 'wrong-after-changes',
    title: 'for 200 ms after each change, connections to cluster IPs are refused',
    afterChange: { rules: packetsTo(newConnection, [serviceCidr], 'reject with tcp reset'), seconds: 0.2 },
  },
  { name: 'dies', title: 'the proxy dies during the second change', kills: true },
]

const table = 'inet kpng-planted'
const linesOf = (rules: readonly string[]): string => rules.map((rule) => `add rule ${table} faulty ${rule}\n`).join('')

/** A fault in a lab. */
export class PlantedFault {
  readonly #lab: Lab
  readonly #fault: LaidOver
  #changes = 0
  #running: Promise<unknown> = Promise.resolve()

  private constructor(lab: Lab, fault: LaidOver) {
    this.#lab = lab
    this.#fault = fault
  }

  static async plant(lab: Lab, fault: LaidOver): Promise<PlantedFault> {
    const chains = ['prerouting', 'output'].map(
      (hook) => `add chain ${table} ${hook} { type filter hook ${hook} priority -310; }
add rule ${table} ${hook} jump faulty
`,
    )
    const text = `add table ${table}\nadd chain ${table} faulty\n${chains.join('')}${linesOf(fault.rules ?? [])}`
    await lab.run('node-a', 'nft', ['-f', '-'], { input: text })
    return new PlantedFault(lab, fault)
  }

  /** The objects have changed. `proxyPid` is the process under test. */
  changed(proxyPid: number | undefined): void {
    if (this.#changes++ === 0) return
    const { afterChange, kills } = this.#fault
    if (kills && this.#changes === 3 && proxyPid !== undefined) process.kill(proxyPid, 'SIGKILL')
    if (!afterChange) return
    const script = `nft -f - && sleep ${afterChange.seconds}; nft flush chain ${table} faulty`
    this.#running = this.#lab.run('node-a', 'sh', ['-c', script], { input: linesOf(afterChange.rules) })
    this.#running.catch(() => {})
  }

  /** Resolves when nothing of it runs any more. */
  async ended(): Promise<void> {
    await this.#running.catch(() => {})
  }
}
