import { rmSync } from 'node:fs'
import { type LabPlan, Lab as NamespaceLab } from '@kpng/linux/testing'
import { programPath } from '../../../linux/testing/bundle.js'
import type { AgentMethods } from './agent.js'
import { bundleAgent, type Machine, machineOf } from './remote.js'

// Three kinds of machines as network namespaces, joined point to point:
//
//   client 10.70.0.2 ── 10.70.0.1 node 10.244.1.1 ── 10.244.1.2 pod-a        (and the same in fd70::, fd44:1::)
//                                      10.244.1.5 ── 10.244.1.6 pod-b
//                                      10.244.1.9 ── 10.244.1.10 pod-c
//
// The node's interface to the client is in a second subnet too, whose address the kernel takes for the interface's own (`secondSubnet`).
// One agent process runs in each.

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
  /** Another agent on the node. It ends with the lab. */
  secondOnNode(): Promise<Machine>
  remove(): Promise<void>
}

/** Nobody else is there. It is the first in IPv4 and the newest in IPv6: what a redirect would choose. */
export const secondSubnet = { device: 'outside', v4: '192.168.70.1', v6: 'fd71::1' } as const

const link = (device: string, host: MachineName, nodeIps: readonly string[], ips: readonly string[]) =>
  [
    { host: 'node', device, ips: nodeIps },
    { host, device: 'eth0', ips },
  ] as const

const outside = ['10.70.0.1/24', 'fd70::1/64']

const plan: LabPlan<MachineName> = {
  hosts: names,
  // As every Kubernetes node is.
  roles: { node: 'router' },
  links: [
    link(
      secondSubnet.device,
      'client',
      [`${secondSubnet.v4}/24`, ...outside, `${secondSubnet.v6}/64`],
      ['10.70.0.2/24', 'fd70::2/64'],
    ),
    link('pod-a', 'pod-a', ['10.244.1.1/30', 'fd44:1::1/64'], ['10.244.1.2/30', 'fd44:1::2/64']),
    link('pod-b', 'pod-b', ['10.244.1.5/30', 'fd44:2::1/64'], ['10.244.1.6/30', 'fd44:2::2/64']),
    link('pod-c', 'pod-c', ['10.244.1.9/30', 'fd44:3::1/64'], ['10.244.1.10/30', 'fd44:3::2/64']),
  ],
  lines: {
    node: defaultVia('10.70.0.2', 'fd70::2', secondSubnet.device),
    client: defaultVia('10.70.0.1', 'fd70::1', 'eth0'),
    'pod-a': defaultVia('10.244.1.1', 'fd44:1::1', 'eth0'),
    'pod-b': defaultVia('10.244.1.5', 'fd44:2::1', 'eth0'),
    'pod-c': defaultVia('10.244.1.9', 'fd44:3::1', 'eth0'),
  },
}

function defaultVia(v4: string, v6: string, device: string): string[] {
  return [`route add default via ${v4} dev ${device}`, `route add ::/0 via ${v6} dev ${device}`]
}

export async function makeLab(): Promise<Lab> {
  const program = programPath('userspace-agent')
  await bundleAgent(program)
  const lab = await NamespaceLab.start(plan)
  const start = async (name: MachineName) =>
    machineOf(await lab.startAgent<AgentMethods>(name, [process.execPath, program], { errors: 'inherit' }))
  const machines = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await start(name)] as const)),
  ) as Record<MachineName, Machine>
  return Object.assign(machines, {
    async crashNode() {
      await machines.node.kill()
      machines.node = await start('node')
    },
    secondOnNode: () => start('node'),
    async remove() {
      await lab.close()
      rmSync(program, { force: true })
    },
  })
}
