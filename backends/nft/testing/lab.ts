import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { addresses, type Name } from './cases.js'

// A node with two pods, a pod on another node and a client outside, each in a network namespace:
//
//   podA1 ──┐
//   podA2 ──┤ node ├── client
//   podB1 ──┘
//
// Point-to-point links; everybody's default route is the node, the node's is the client.

const spokes = ['podA1', 'podA2', 'podB1', 'client'] as const

export type Place = (typeof spokes)[number] | 'node'

export interface AskRequest {
  readonly to: string
  readonly port: number
  readonly protocol?: string
  readonly count?: number
  readonly timeoutMs?: number
  readonly flow?: string
}

type Reply = Record<string, unknown>

/** A program in a namespace that asks and answers. */
class Agent {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #calls = 0

  constructor(namespace: string, name: Place) {
    const script = fileURLToPath(new URL('agent.js', import.meta.url))
    this.#child = spawn('ip', ['netns', 'exec', namespace, process.execPath, script, name], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const reply = JSON.parse(line) as Reply
      this.#waiting.get(reply.call as number)?.(reply)
      this.#waiting.delete(reply.call as number)
    })
  }

  async do(operation: string, request: object = {}): Promise<Reply> {
    const call = ++this.#calls
    const reply = await new Promise<Reply>((resolve) => {
      this.#waiting.set(call, resolve)
      this.#child.stdin?.write(`${JSON.stringify({ call, operation, ...request })}\n`)
    })
    if (reply.error) throw new Error(String(reply.error))
    return reply
  }

  end(): void {
    this.#child.stdin?.end()
  }
}

function ip(args: readonly string[], input = ''): void {
  const { status, stderr } = spawnSync('ip', [...args], { input, encoding: 'utf8' })
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`)
}

const both = (name: Name) => addresses[name].map((address) => `${address}/${address.includes(':') ? 128 : 32}`)

const assign = (address: string, device: string) =>
  `address add ${address} dev ${device}${address.includes(':') ? ' nodad' : ''}`

/** Neighbours are asked for on their own link, so the node has an address on each. */
const linkGateway = 'fe80::1'

export class Lab {
  readonly #prefix = `kpng-nft-${process.pid}-`
  readonly #agents = new Map<Place, Agent>()

  /** Builds it; removed by `remove`, even when building fails half-way. */
  async build(): Promise<void> {
    for (const place of ['node', ...spokes] as const) ip(['netns', 'add', this.namespace(place)])
    ip(['-n', this.namespace('node'), '-batch', '-'], this.#nodeCommands())
    for (const place of spokes) ip(['-n', this.namespace(place), '-batch', '-'], this.#spokeCommands(place))
    // After the other ends are up.
    ip(['-n', this.namespace('node'), '-batch', '-'], this.#nodeRoutes())
    for (const place of ['node', ...spokes] as const) {
      this.#settings(place)
      this.#agents.set(place, new Agent(this.namespace(place), place))
    }
    await Promise.all(['podA1', 'podA2', 'podB1'].map((pod) => this.agent(pod as Place).do('listen', { port: 8080 })))
  }

  namespace(place: Place): string {
    return this.#prefix + place
  }

  agent(place: Place): Agent {
    const agent = this.#agents.get(place)
    if (!agent) throw new Error(`Nobody is at ${place}.`)
    return agent
  }

  async ask(from: Place, request: AskRequest): Promise<string[]> {
    const { answers } = await this.agent(from).do('ask', { timeoutMs: 2000, ...request })
    return answers as string[]
  }

  remove(): void {
    for (const agent of this.#agents.values()) agent.end()
    for (const place of ['node', ...spokes] as const) spawnSync('ip', ['netns', 'del', this.namespace(place)])
  }

  #nodeCommands(): string {
    const lines = ['link set lo up']
    for (const address of both('otherNodeAddress')) lines.push(assign(address, 'lo'))
    for (const place of spokes) {
      lines.push(`link add to-${place} type veth peer name eth0 netns ${this.namespace(place)}`)
      lines.push(`link set to-${place} up`, assign(`${linkGateway}/64`, `to-${place}`))
      if (place === 'client') for (const address of both('node')) lines.push(assign(address, 'to-client'))
    }
    return `${lines.join('\n')}\n`
  }

  #nodeRoutes(): string {
    const lines = spokes.flatMap((place) => both(place).map((address) => `route add ${address} dev to-${place}`))
    const [v4, v6] = addresses.client
    lines.push(`route add default via ${v4} dev to-client onlink`, `route add ::/0 via ${v6} dev to-client onlink`)
    return `${lines.join('\n')}\n`
  }

  #spokeCommands(place: Place): string {
    const [v4] = addresses.node
    const lines = ['link set lo up', 'link set eth0 up']
    for (const address of both(place as Name)) lines.push(assign(address, 'eth0'))
    lines.push(`route add ${v4} dev eth0`)
    lines.push(`route add default via ${v4} dev eth0 onlink`, `route add ::/0 via ${linkGateway} dev eth0`)
    return `${lines.join('\n')}\n`
  }

  #settings(place: Place): void {
    const values = ['net.ipv4.icmp_ratelimit=0', 'net.ipv6.icmp.ratelimit=0']
    if (place === 'node') values.push('net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
    // Links between namespaces have routes of their own in both directions, which a strict filter would not understand.
    values.push('net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.default.rp_filter=0')
    spawnSync('ip', ['netns', 'exec', this.namespace(place), 'sysctl', '-q', '-w', ...values])
  }
}
