import { addressBits, familyOf } from '@kpng/api'
import { outputOf, type ProgramOptions } from '../program.js'
import type { AgentMethods } from './agent/methods.js'
import type { Methods } from './agent/requests.js'
import { Agent, agentCommand } from './agent.js'
import { ipBatch, ipBatchNow } from './ip.js'
import { endProcessesIn, endProcessesInNow, namespaceName, sweepLeftovers } from './leftovers.js'
import { requireLab } from './requirements.js'
import { type Role, settingsScript } from './settings.js'

/** One end of a link between two hosts. */
export interface LinkEnd<Host extends string> {
  readonly host: Host
  /** The name of the interface. */
  readonly device: string
  /**
   * Addresses of the interface, in the order in which it gets them. One with a prefix (`10.70.0.1/24`) is in a subnet. One
   * without is for the host alone: it gets routes from and to such addresses at the other end.
   */
  readonly ips?: readonly string[]
}

export type Link<Host extends string> = readonly [near: LinkEnd<Host>, far: LinkEnd<Host>]

/** A lab, or a part of one, as data: network namespaces ("hosts") and the links between them. */
export interface LabPlan<Host extends string> {
  readonly hosts: readonly Host[]
  /** Between these hosts, or from them to hosts that the lab has already. */
  readonly links?: readonly Link<Host>[]
  /** Default `host`. */
  readonly roles?: Readonly<Partial<Record<Host, Role>>>
  /** Lines for `ip -batch` inside a host, run when all links are up: routes, further addresses, bridges. */
  readonly lines?: Readonly<Partial<Record<Host, readonly string[]>>>
}

let count = 0

/**
 * A running lab. Several can run at the same time on one machine. It is removed by `close`, and by the end of the process short of
 * a kill; what a killed process left is removed by the next lab.
 */
export class Lab<Host extends string> {
  readonly #hosts = new Set<Host>()
  readonly #number = ++count
  readonly #agents = new Set<Agent<Methods>>()
  /** Every link that was made; `undefined` if it was removed. Its place is its number. */
  readonly #links: (Link<Host> | undefined)[] = []
  #isClosed = false

  private constructor() {
    process.once('exit', this.#removeNow)
  }

  /** Needs root and `ip`; the error says what is missing. A lab that could not be finished is removed again. */
  static async start<Host extends string>(plan: LabPlan<Host>): Promise<Lab<Host>> {
    requireLab()
    await sweepLeftovers()
    const lab = new Lab<Host>()
    try {
      await lab.add(plan)
      return lab
    } catch (error) {
      await lab.close()
      throw error
    }
  }

  /** The network namespace of a host, as `ip netns` knows it. */
  namespaceOf(host: Host): string {
    return namespaceName(process.pid, this.#number, host)
  }

  /** A command line that runs a command inside a host. */
  inside(host: Host, command: readonly string[]): string[] {
    return ['ip', 'netns', 'exec', this.namespaceOf(host), ...command]
  }

  /** What a program prints inside a host. Rejects if it fails. */
  run(host: Host, program: string, args: readonly string[], options: Partial<ProgramOptions> = {}): Promise<string> {
    const [command = '', ...rest] = this.inside(host, [program, ...args])
    return outputOf(command, rest, { limitMs: 30_000, ...options })
  }

  /** Lines for `ip -batch` inside a host. */
  async ip(host: Host, lines: readonly string[]): Promise<void> {
    await ipBatch(this.namespaceOf(host), lines)
  }

  /** Starts an agent inside a host: by default the one of this package, whose servers are named after the host. */
  async startAgent<M extends Methods = AgentMethods>(
    host: Host,
    command: readonly string[] = agentCommand(),
    options: { errors?: 'pipe' | 'inherit' } = {},
  ): Promise<Agent<M>> {
    const agent = await Agent.start<M>(host, this.inside(host, [...command, host]), options)
    this.#agents.add(agent as unknown as Agent<Methods>)
    return agent
  }

  /** Adds hosts and links to a lab that runs. */
  async add({ hosts, links = [], roles, lines }: LabPlan<Host>): Promise<void> {
    const firstLink = this.#links.length
    this.#links.push(...links)
    for (const host of hosts) this.#hosts.add(host)
    const touched = new Set([...hosts, ...links.flat().map(({ host }) => host)])
    const each = (work: (host: Host) => Promise<unknown>) => Promise.all([...touched].map(work))
    await ipBatch(
      undefined,
      hosts.map((host) => `netns add ${this.namespaceOf(host)}`),
    )
    await Promise.all(
      hosts.map((host) => this.run(host, 'sh', ['-s'], { input: settingsScript(roles?.[host] ?? 'host') })),
    )
    if (links.length > 0)
      await ipBatch(
        undefined,
        linkLines(links, (host) => this.namespaceOf(host), firstLink),
      )
    await each((host) => this.ip(host, addressLines(links, host, firstLink)))
    await each(async (host) => lines?.[host] && this.ip(host, lines[host] ?? []))
  }

  /** Removes one host with its agents and its links. */
  async remove(host: Host): Promise<void> {
    if (!this.#hosts.has(host) || this.#isClosed) return
    const agents = [...this.#agents].filter(({ name }) => name === host)
    for (const agent of agents) this.#agents.delete(agent)
    await Promise.all(agents.map((agent) => agent.stop()))
    await endProcessesIn(this.namespaceOf(host))
    // A namespace that is deleted loses its interfaces some time later. The next host may need their names now.
    await this.ip(host, this.#forgetLinksOf(host))
    await ipBatch(undefined, [`netns delete ${this.namespaceOf(host)}`])
    this.#hosts.delete(host)
  }

  /** Lines that remove the interfaces of a host, and with them their other ends. */
  #forgetLinksOf(host: Host): string[] {
    const lines: string[] = []
    for (const [place, link] of this.#links.entries())
      for (const end of link ?? []) {
        if (end.host !== host) continue
        lines.push(`link delete dev ${end.device}`)
        this.#links[place] = undefined
      }
    return lines
  }

  /** Ends the agents and everything else in the namespaces, and removes them. May be called twice. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.all([...this.#agents].map((agent) => agent.stop()))
    await Promise.all([...this.#hosts].map((host) => endProcessesIn(this.namespaceOf(host))))
    process.off('exit', this.#removeNow)
    this.#removeNow()
  }

  readonly #removeNow = (): void => {
    const namespaces = [...this.#hosts].map((host) => this.namespaceOf(host))
    // A namespace without a name lives on with whatever runs in it, and nobody finds that again.
    for (const namespace of namespaces) endProcessesInNow(namespace)
    ipBatchNow(namespaces.map((namespace) => `netns delete ${namespace}`))
  }
}

/** The hardware address of one end of a link: known before the link exists. */
const hardwareAddress = (link: number, end: 0 | 1): string =>
  `02:00:00:${twoDigits(link >> 8)}:${twoDigits(link & 0xff)}:${twoDigits(end)}`

const twoDigits = (number: number): string => number.toString(16).padStart(2, '0')

/**
 * Lines for `ip -batch` in the machine's own namespace: they make every veth with its ends in place. The two ends get different
 * index numbers: with equal ones, as they come by themselves in fresh namespaces, the kernel takes up to a second to notice
 * that the other end is up.
 */
export function linkLines<Host extends string>(
  links: readonly Link<Host>[],
  namespaceOf: (host: Host) => string,
  firstLink = 0,
): string[] {
  return links.map(([near, far], place) => {
    const number = firstLink + place
    const end = ({ device, host }: LinkEnd<Host>, index: number, which: 0 | 1) =>
      `name ${device} index ${index + number} address ${hardwareAddress(number, which)} netns ${namespaceOf(host)}`
    return `link add ${end(near, 100, 0)} type veth peer ${end(far, 200, 1)}`
  })
}

/** Lines for `ip -batch` in the namespace of a host: its interfaces come up and get their addresses. */
export function addressLines<Host extends string>(links: readonly Link<Host>[], host: Host, firstLink = 0): string[] {
  const lines = ['link set lo up']
  for (const [place, [near, far]] of links.entries()) {
    const number = firstLink + place
    if (near.host === host) lines.push(...endLines(near, far, hardwareAddress(number, 1)))
    if (far.host === host) lines.push(...endLines(far, near, hardwareAddress(number, 0)))
  }
  return lines
}

function endLines<Host extends string>(own: LinkEnd<Host>, peer: LinkEnd<Host>, peerHardware: string): string[] {
  const { device, ips = [] } = own
  const lines = [`link set ${device} up`]
  for (const ip of ips) lines.push(addressLine(ip, device))
  for (const other of (peer.ips ?? []).filter((ip) => !ip.includes('/'))) {
    // Routes to the other end are made by hand: the kernel forgets those of `peer` in IPv6 when the link comes up late.
    // Neighbours are known, not discovered: discovery needs a link-local address, which comes late on a new link.
    lines.push(
      `route add ${other} dev ${device}`,
      `neighbour add ${other} lladdr ${peerHardware} dev ${device} nud permanent`,
    )
  }
  return lines
}

/** The line that gives an address to an interface. Without a prefix it is for the host alone. */
export function addressLine(ip: string, device: string): string {
  const family = familyOf(ip)
  const address = ip.includes('/') ? ip : `${ip}/${addressBits[family]}`
  return `address add ${address} dev ${device}${family === 'IPv6' ? ' nodad' : ''}`
}
