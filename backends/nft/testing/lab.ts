import { type Agent, type LabPlan, Lab as NamespaceLab, type Outcome } from '@kpng/linux/testing'
import { bundledAgent } from '../../../linux/testing/bundle.js'
import { addresses } from './cases.js'

// A node with two pods, a pod on another node and a client outside, each in a network namespace:
//
//   podA1 ──┐
//   podA2 ──┤ node ├── client
//   podB1 ──┘
//
// Links between single addresses; everybody's default route is the node, the node's is the client.

const pods = ['podA1', 'podA2', 'podB1'] as const
const spokes = [...pods, 'client'] as const

export type Place = (typeof spokes)[number] | 'node'

export interface AskRequest {
  readonly to: string
  readonly port: number
  readonly protocol?: string
  readonly count?: number
  readonly timeoutMs?: number
  readonly flow?: string
}

const defaultVia = ([v4, v6]: readonly [string, string], device: string): string[] => [
  `route add default via ${v4} dev ${device} onlink`,
  `route add ::/0 via ${v6} dev ${device} onlink`,
]

const plan: LabPlan<Place> = {
  hosts: ['node', ...spokes],
  roles: { node: 'router' },
  links: spokes.map((place) => [
    { host: 'node', device: `to-${place}`, ips: addresses.node },
    { host: place, device: 'eth0', ips: addresses[place] },
  ]),
  lines: {
    ...Object.fromEntries(spokes.map((place) => [place, defaultVia(addresses.node, 'eth0')])),
    node: [
      ...addresses.otherNodeAddress.map((ip) => `address add ${ip} dev lo`),
      ...defaultVia(addresses.client, 'to-client'),
    ],
  },
}

export class Lab {
  readonly #lab: NamespaceLab<Place>
  readonly #agents: ReadonlyMap<Place, Agent>

  private constructor(lab: NamespaceLab<Place>, agents: ReadonlyMap<Place, Agent>) {
    this.#lab = lab
    this.#agents = agents
  }

  /** @param agentCommand where nothing can be bundled. Default: the agent of the sources, bundled now. */
  static async build(agentCommand?: readonly string[]): Promise<Lab> {
    const lab = await NamespaceLab.start(plan)
    const agents = new Map<Place, Agent>()
    const command = agentCommand ?? (await bundledAgent())
    for (const place of plan.hosts) agents.set(place, await lab.startAgent(place, command))
    for (const pod of pods) {
      const everywhere = ['0.0.0.0', '::'].flatMap((ip) =>
        (['TCP', 'UDP'] as const).map((protocol) => ({ protocol, ip, port: 8080 })),
      )
      await agents.get(pod)?.call('serve', everywhere)
    }
    return new Lab(lab, agents)
  }

  namespace(place: Place): string {
    return this.#lab.namespaceOf(place)
  }

  agent(place: Place): Agent {
    const agent = this.#agents.get(place)
    if (!agent) throw new Error(`Nobody is at ${place}.`)
    return agent
  }

  /** Asks, `count` times at once. Answers: who answered and which client address it saw, or `rejected`, or `dropped`. */
  async ask(from: Place, { to, port, protocol, count = 1, timeoutMs = 2000, flow }: AskRequest): Promise<string[]> {
    const place = { protocol: protocol === 'udp' ? 'UDP' : 'TCP', ip: to, port } as const
    const request = { to: place, timeoutMs, ...(flow === undefined ? {} : { flow }) }
    const outcomes = Array.from({ length: count }, () => this.agent(from).call('probe', request))
    return (await Promise.all(outcomes)).map(answerText)
  }

  remove(): Promise<void> {
    return this.#lab.close()
  }
}

export function answerText(seen: Outcome): string {
  if (seen.outcome === 'reached') return `${seen.server} ${seen.from}`
  if (seen.outcome === 'refused') return 'rejected'
  return seen.outcome === 'dropped' ? 'dropped' : seen.how
}
