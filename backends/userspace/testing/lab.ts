import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { AgentMethods } from './agent.js'

// Three kinds of machines as network namespaces, joined point to point:
//
//   client 10.70.0.2 ── 10.70.0.1 node 10.244.1.1 ── 10.244.1.2 pod-a        (and the same in fd70::, fd44:1::)
//                                      10.244.1.5 ── 10.244.1.6 pod-b
//                                      10.244.1.9 ── 10.244.1.10 pod-c
//
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

type Remote = { [K in keyof AgentMethods]: (...args: Parameters<AgentMethods[K]>) => Promise<Awaited<ReturnType<AgentMethods[K]>>> }

/** A machine of the lab: every method runs inside its namespace. */
export type Machine = Remote & { readonly child: ChildProcess }

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
  const folder = mkdtempSync(join(tmpdir(), 'kpng-lab-'))
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
    rmSync(folder, { recursive: true, force: true })
  }
  process.on('exit', remove)
  try {
    ipBatch([], names.map((name) => `netns add ${namespace(name)}`))
    for (const name of names) ipBatch(['-n', namespace(name)], machineCommands(name, namespace))
    for (const name of names) ipBatch(['-n', namespace(name)], addressCommands(name))
    const program = join(folder, 'agent.mjs')
    await bundleAgent(program)
    for (const name of names) machines.set(name, startAgent(namespace(name), program))
    for (const machine of machines.values()) {
      await machine.sysctl('net.ipv4.icmp_ratelimit', '0')
      await machine.sysctl('net.ipv6.icmp.ratelimit', '0')
    }
    const lab = {
      ...Object.fromEntries(machines),
      remove,
      async crashNode() {
        const old = machines.get('node')?.child
        const gone = new Promise((resolve) => old?.once('exit', resolve))
        old?.kill('SIGKILL')
        await gone
        machines.set('node', startAgent(namespace('node'), program))
        Object.assign(lab, { node: machines.get('node') })
      },
    } as Lab
    return lab
  } catch (error) {
    remove()
    throw error
  }
}

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

function machineCommands(name: MachineName, namespace: (name: MachineName) => string): string[] {
  if (name !== 'node') return ['link set lo up']
  return ['link set lo up', ...links.map(([other, device]) => `link add ${device} type veth peer name eth0 netns ${namespace(other)}`)]
}

function addressCommands(name: MachineName): string[] {
  if (name === 'node') {
    const own = links.flatMap(([, device, v4, v6]) => [
      `addr add ${v4} dev ${device}`,
      `addr add ${v6} dev ${device} nodad`,
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

/** The agent is TypeScript; Node in a namespace needs it in one plain file. */
async function bundleAgent(outfile: string): Promise<void> {
  await build({
    entryPoints: [fileURLToPath(new URL('agent.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['kpng-source'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)" },
    logLevel: 'error',
  })
}

function startAgent(namespace: string, program: string): Machine {
  const child = spawn('ip', ['netns', 'exec', namespace, process.execPath, program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  let id = 0
  child.on('message', (answer: { id: number; result?: unknown; error?: string }) => {
    const caller = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.error !== undefined) caller?.reject(new Error(answer.error))
    else caller?.resolve(answer.result)
  })
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error(`the agent in ${namespace} ended`))
  })
  return new Proxy({ child } as Machine, {
    get: (target, method: string) =>
      method === 'child' || method === 'then'
        ? Reflect.get(target, method)
        : (...args: unknown[]) =>
            new Promise((resolve, reject) => {
              waiting.set(++id, { resolve, reject })
              child.send({ id, method, args })
            }),
  })
}
