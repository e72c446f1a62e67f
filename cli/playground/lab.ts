import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { serveApi } from '@kpng/core/sinks/api'
import type { Store } from '@kpng/core/store'
import { type Agent, Lab, whyNoLab } from '@kpng/linux/lab'
import type { EchoIdentity, EchoPort, PodServer } from '@kpng/playground'
import type { Context } from '../context.js'
import { selfCommand } from '../self.js'
import { addressText, type ServiceView } from './demo-service.js'
import type { NodeMethods, PodMethods } from './lab-agent.js'
import type { Hint } from './screen.js'
import type { DataPlane, SyncTimes } from './session.js'

// A node and its pods in network namespaces, with kpng's nftables backend on the node:
//
//   kubectl ──► API server ──► kpng core            on the machine
//                                  │ Unix socket
//   ───────────────────────────────┼───────────────────────────────
//                               kpng nft            namespace "node": 10.70.0.1
//           outside ──► call ──► kernel ──► veth ──► pod-1, pod-2, …: 10.244.0.x, one namespace each
//
// Nothing of the machine's own network is changed.

const nodeAddress = '10.70.0.1'
const outsideAddress = '10.70.0.2'
const podCidr = '10.244.0.0/16'
const serviceCidr = '10.96.0.0/16'

const agentCommand = (): string[] => [...selfCommand(), 'playground-agent']

/** In the terminal of somebody who used sudo for this one, too. */
const sudo = process.env.SUDO_USER ? 'sudo ' : ''

export async function labDataPlane(context: Context): Promise<DataPlane> {
  const why = whyNoLab('nft')
  if (why !== undefined) throw new KpngError('unsupported', why)
  const lab = await Lab.start<string>({
    hosts: ['node', 'outside'],
    roles: { node: 'router' },
    links: [
      [
        { host: 'node', device: 'eth0', ips: [`${nodeAddress}/24`] },
        { host: 'outside', device: 'eth0', ips: [`${outsideAddress}/24`] },
      ],
    ],
    // A route to everywhere, as nodes have it: what is sent to a cluster IP must have one before the kernel looks at kpng's rules.
    lines: {
      node: [`route add default via ${outsideAddress} dev eth0 onlink`],
      outside: [`route add default via ${nodeAddress} dev eth0 onlink`],
    },
  })
  const folder = mkdtempSync(join(tmpdir(), `kpng-lab-${process.pid}-`))
  try {
    const node = await lab.startAgent<NodeMethods>('node', agentCommand())
    let pods = 0
    return {
      title: `kpng's nftables backend in the network namespace ${lab.namespaceOf('node')}`,
      servesApiService: false,
      agentSocket: join(folder, 'agent.sock'),
      options: {
        nodeAddress,
        podCidr,
        serviceCidrs: [serviceCidr],
        podServer: (identity) => new LabPod(lab, `pod-${++pods}`, identity),
      },
      call: (host, port) => node.call('call', host, port),
      hints: (service) => hints(lab, service),
      serve: (store, nodeName, onSync, hints) => serve(node, store, folder, nodeName, { onSync, hints }, context),
      close: async () => {
        await lab.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await lab.close()
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

function hints(lab: Lab<string>, service: ServiceView | undefined): Hint[] {
  const inside = (host: string) => `${sudo}ip netns exec ${lab.namespaceOf(host)}`
  const { target, nodePort } = service ?? {}
  return [
    ...(service && target ? [{ command: `${inside('node')} curl http://${addressText(service)}`, effect: '' }] : []),
    ...(nodePort === undefined
      ? []
      : [{ command: `${inside('outside')} curl http://${nodeAddress}:${nodePort}`, effect: 'from outside' }]),
    { command: `${inside('node')} nft list map ip kpng endpoints`, effect: 'what kpng wrote' },
    { command: `${inside('node')} nft list table ip kpng`, effect: 'all of it' },
  ]
}

/** Hands the state to the node over a Unix socket, which namespaces of the network do not separate. */
async function serve(
  node: Agent<NodeMethods>,
  store: Store,
  folder: string,
  nodeName: string,
  {
    onSync,
    hints,
  }: { readonly onSync: (times: SyncTimes) => void; readonly hints: (() => readonly Hint[]) | undefined },
  { log, signal, verbosity, version }: Context,
): Promise<void> {
  const api = `unix://${folder}/kpng.sock`
  const server = await serveApi({ store, log, listen: api })
  try {
    await node.call('program', { api, nodeName, podCidr, version, verbosity: verbosity.get(), folder })
    const ended = new Promise<'ended'>((resolve) => signal.addEventListener('abort', () => resolve('ended')))
    while (!signal.aborted) {
      const news = await Promise.race([node.call('news'), ended])
      if (news === 'ended') return
      for (const item of news) {
        if ('sync' in item) {
          onSync(item.sync)
          // The names in them are those of the pods that there are now.
          if (hints) await node.call('setHints', hints())
        } else if ('line' in item) process.stderr.write(item.line)
        else throw new KpngError('unavailable', `The node of the lab gave up: ${item.failure}`)
      }
    }
  } finally {
    await server.close(500)
  }
}

/** An echo server in a namespace of its own, connected to the node. */
class LabPod implements PodServer {
  readonly #lab: Lab<string>
  readonly #host: string
  readonly #identity: EchoIdentity
  #starting: Promise<void> = Promise.resolve()

  constructor(lab: Lab<string>, host: string, identity: EchoIdentity) {
    this.#lab = lab
    this.#host = host
    this.#identity = identity
  }

  listen(addresses: readonly string[], ports: readonly EchoPort[]): Promise<void> {
    this.#starting = this.#start(addresses, ports)
    return this.#starting
  }

  async #start(addresses: readonly string[], ports: readonly EchoPort[]): Promise<void> {
    await this.#lab.add({
      hosts: [this.#host],
      links: [
        [
          { host: 'node', device: this.#host, ips: [nodeAddress] },
          { host: this.#host, device: 'eth0', ips: addresses },
        ],
      ],
      lines: { [this.#host]: [`route add default via ${nodeAddress} dev eth0 onlink`] },
    })
    const agent = await this.#lab.startAgent<PodMethods>(this.#host, agentCommand())
    await agent.call('listen', this.#identity, addresses, ports)
  }

  async close(): Promise<void> {
    // Also one that could not start leaves a namespace. Whatever cannot be removed now goes with the lab.
    await this.#starting.catch(() => {})
    await this.#lab.remove(this.#host).catch(() => {})
  }
}
