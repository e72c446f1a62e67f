import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { programPath } from '../../../linux/testing/bundle.js'
import { bundleAgent, type Machine, startAgent } from './remote.js'

// Three kinds of machines as network namespaces, joined point to point:
//
//   client 10.70.0.2 ── 10.70.0.1 node 10.244.1.1 ── 10.244.1.2 pod-a        (and the same in fd70::, fd44:1::)
//                                      10.244.1.5 ── 10.244.1.6 pod-b
//                                      10.244.1.9 ── 10.244.1.10 pod-c
//
// The node's interface to the client is in a second subnet too, whose address the kernel takes for the interface's own (`secondSubnet`).
// One agent process runs in each.

/** Why there can be no lab here, or undefined. */
export function missingForLab(...tools: string[]): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are Linux only'
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const lacking = ['ip', ...tools].filter((tool) => {
    try {
      execFileSync('which', [tool], { stdio: 'ignore' })
      return false
    } catch {
      return true
    }
  })
  if (lacking.length > 0) return `not installed: ${lacking.join(', ')}`
  try {
    const name = `kpng-${process.pid}-try`
    execFileSync('ip', ['netns', 'add', name], { stdio: 'pipe' })
    execFileSync('ip', ['netns', 'del', name], { stdio: 'pipe' })
  } catch {
    return 'network namespaces cannot be made here'
  }
  return undefined
}

export const names = ['client', 'node', 'pod-a', 'pod-b', 'pod-c'] as const
export type MachineName = (typeof names)[number]

export const podIps = {
  'pod-a': { v4: '10.244.1.2', v6: 'fd44:1::2' },
  'pod-b': { v4: '10.244.1.6', v6: 'fd44:2::2' },
  'pod-c': { v4: '10.244.1.10', v6: 'fd44:3::2' },
} as const

export interface Lab extends Record<MachineName, Machine> {
  /** Starts the node's agent again, as a crash would leave it: nothing is cleaned up. */
  crashNode(): Promise<void>
  remove(): void
}

let labs = 0

export async function makeLab(): Promise<Lab> {
  const prefix = `kpng-${process.pid}-${++labs}`
  const namespace = (name: MachineName) => `${prefix}-${name}`
  const program = programPath('userspace-agent')
  const machines = new Map<MachineName, Machine>()
  const remove = () => {
    process.off('exit', remove)
    for (const { child } of machines.values()) child.kill('SIGKILL')
    for (const name of names) {
      try {
        execFileSync('ip', ['netns', 'del', namespace(name)], { stdio: 'pipe' })
      } catch {
        // It was never made.
      }
    }
    rmSync(program, { force: true })
  }
  process.on('exit', remove)
  try {
    ipBatch(
      [],
      names.map((name) => `netns add ${namespace(name)}`),
    )
    for (const name of names) ipBatch(['-n', namespace(name)], machineCommands(name, namespace))
    for (const name of names) ipBatch(['-n', namespace(name)], addressCommands(name))
    await bundleAgent(program)
    for (const name of names) machines.set(name, startAgent(inNamespace(namespace(name)), program))
    for (const machine of machines.values()) {
      await machine.sysctl('net.ipv4.icmp_ratelimit', '0')
      await machine.sysctl('net.ipv6.icmp.ratelimit', '0')
    }
    // As on every Kubernetes node.
    await machines.get('node')?.sysctl('net.ipv4.ip_forward', '1')
    await machines.get('node')?.sysctl('net.ipv6.conf.all.forwarding', '1')
    const lab = {
      ...Object.fromEntries(machines),
      remove,
      async crashNode() {
        const old = machines.get('node')?.child
        const gone = new Promise((resolve) => old?.once('exit', resolve))
        old?.kill('SIGKILL')
        await gone
        machines.set('node', startAgent(inNamespace(namespace('node')), program))
        Object.assign(lab, { node: machines.get('node') })
      },
    } as Lab
    return lab
  } catch (error) {
    remove()
    throw error
  }
}

const inNamespace = (name: string): string[] => ['ip', 'netns', 'exec', name]

function ipBatch(args: readonly string[], commands: readonly string[]): void {
  execFileSync('ip', [...args, '-batch', '-'], { input: `${commands.join('\n')}\n`, stdio: ['pipe', 'pipe', 'pipe'] })
}

const links: readonly [MachineName, string, string, string, string, string][] = [
  // other side, node's interface, node's and the other's addresses
  ['client', 'outside', '10.70.0.1/24', 'fd70::1/64', '10.70.0.2/24', 'fd70::2/64'],
  ['pod-a', 'pod-a', '10.244.1.1/30', 'fd44:1::1/64', '10.244.1.2/30', 'fd44:1::2/64'],
  ['pod-b', 'pod-b', '10.244.1.5/30', 'fd44:2::1/64', '10.244.1.6/30', 'fd44:2::2/64'],
  ['pod-c', 'pod-c', '10.244.1.9/30', 'fd44:3::1/64', '10.244.1.10/30', 'fd44:3::2/64'],
]

/** Nobody else is there. It is the first in IPv4 and the newest in IPv6: what a redirect would choose. */
export const secondSubnet = { device: 'outside', v4: '192.168.70.1', v6: 'fd71::1' } as const

function machineCommands(name: MachineName, namespace: (name: MachineName) => string): string[] {
  if (name !== 'node') return ['link set lo up']
  return [
    'link set lo up',
    ...links.map(([other, device]) => `link add ${device} type veth peer name eth0 netns ${namespace(other)}`),
  ]
}

function addressCommands(name: MachineName): string[] {
  if (name === 'node') {
    const { device: outer, ...second } = secondSubnet
    const own = links.flatMap(([, device, v4, v6]) => [
      ...(device === outer ? [`addr add ${second.v4}/24 dev ${device}`] : []),
      `addr add ${v4} dev ${device}`,
      `addr add ${v6} dev ${device} nodad`,
      ...(device === outer ? [`addr add ${second.v6}/64 dev ${device} nodad`] : []),
      `link set ${device} up`,
    ])
    return [...own, 'route add default via 10.70.0.2', 'route add ::/0 via fd70::2']
  }
  const [, , nodeV4 = '', nodeV6 = '', v4, v6] = links.find(([other]) => other === name) as (typeof links)[number]
  const gateway = (address: string) => address.split('/')[0]
  return [
    `addr add ${v4} dev eth0`,
    `addr add ${v6} dev eth0 nodad`,
    'link set eth0 up',
    `route add default via ${gateway(nodeV4)}`,
    `route add ::/0 via ${gateway(nodeV6)}`,
  ]
}
