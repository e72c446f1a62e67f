import { readdir, readFile } from 'node:fs/promises'
import { release } from 'node:os'
import { join } from 'node:path'
import type { Known } from '@kpng/api'
import { messageOf, silentLog } from '@kpng/api'
import { hasCapability, interfaceAddresses, sysctlPath } from '@kpng/linux'
import { findKubeProxyLeftovers } from '../kube-proxy-leftovers/index.js'
import { type RunProgram, runProgram } from '../kube-proxy-leftovers/program.js'
import type { Read } from './finding.js'
import { type NodeFacts, type SavedRules, sysctlsOfInterest, type TrafficFacts } from './node-facts.js'
import { readAgents, readPorts, readProcesses } from './read-proxies.js'

export interface ReadNodeOptions {
  /** Why the nftables backend cannot work here; undefined if it can. */
  readonly nftProblem: () => Promise<string | undefined>
  /** The sockets of the agent API to ask. Default: those in the usual folder. */
  readonly agentSockets?: readonly string[]
  readonly platform?: NodeJS.Platform
  readonly run?: RunProgram
}

/** Reads what can be read of this machine, and changes nothing. Never rejects. */
export async function readNode(options: ReadNodeOptions): Promise<Read<NodeFacts>> {
  const { platform = process.platform } = options
  const run = remembering(options.run ?? runProgram)
  const known = knownOn(platform)
  const asRoot = async <T>(read: () => Promise<T>): Promise<Known<T>> =>
    platform === 'linux' && hasCapability('CAP_NET_ADMIN') === false
      ? { unknown: 'it needs root, or the capability CAP_NET_ADMIN' }
      : known(read)
  const processes = await known(readProcesses)
  return {
    processes,
    kernelRelease: await known(release),
    nftProblem: await asRoot(async () => (await options.nftProblem()) ?? ''),
    hasNetAdmin: await known(() => hasCapability('CAP_NET_ADMIN') ?? false),
    ...(await readTraffic(platform)),
    bridges: await known(readBridges),
    openFiles: await known(() => readOpenFiles('value' in processes ? processes.value : [])),
    ports: await known(readPorts),
    agents: await known(() => readAgents(options.agentSockets)),
    leftovers: await asRoot(() => readLeftovers(run)),
    iptables: await asRoot(() => readIptables(run)),
  }
}

/** Reads what decides whether packets of Services get through. It runs no program, and never rejects. */
export async function readTraffic(platform: NodeJS.Platform = process.platform): Promise<Read<TrafficFacts>> {
  const known = knownOn(platform)
  return {
    sysctls: await known(readSysctls),
    strictInterfaces: await known(readStrictInterfaces),
    conntrack: await known(readConntrack),
    addresses: await known(() =>
      interfaceAddresses()
        .filter(({ isInternal, isLinkLocal }) => !isInternal && !isLinkLocal)
        .map(({ ip }) => ip),
    ),
  }
}

/** Reads a fact, or says why it is not known. */
const knownOn =
  (platform: NodeJS.Platform) =>
  async <T>(read: () => T | Promise<T>): Promise<Known<T>> => {
    if (platform !== 'linux') return { unknown: `this is ${platform}, and the check is for Linux` }
    try {
      return { value: await read() }
    } catch (error) {
      return { unknown: messageOf(error) }
    }
  }

/** The same program is asked once: saving large tables takes seconds. */
function remembering(run: RunProgram): RunProgram {
  const answers = new Map<string, ReturnType<RunProgram>>()
  return (program, args, input) => {
    const key = JSON.stringify([program, args, input])
    const answer = answers.get(key) ?? run(program, args, input)
    answers.set(key, answer)
    return answer
  }
}

export async function readSysctls(): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const name of sysctlsOfInterest) {
    const value = await textOf(`/${sysctlPath(name)}`)
    if (value !== undefined) values[name] = value
  }
  return values
}

/** The kernel uses the higher one of `all` and the interface's own value; 1 is strict, 2 is loose. */
async function readStrictInterfaces(): Promise<string[]> {
  const folder = '/proc/sys/net/ipv4/conf'
  const filterOf = async (name: string) => Number((await textOf(join(folder, name, 'rp_filter'))) ?? 0)
  const all = await filterOf('all')
  const strict: string[] = []
  for (const name of await readdir(folder)) {
    if (['all', 'default', 'lo'].includes(name)) continue
    if (Math.max(all, await filterOf(name)) === 1) strict.push(name)
  }
  return strict
}

async function readBridges(): Promise<string[]> {
  const bridges: string[] = []
  for (const name of await readdir('/sys/class/net')) {
    if ((await readdir(`/sys/class/net/${name}/bridge`).catch(() => undefined)) !== undefined) bridges.push(name)
  }
  return bridges
}

async function readConntrack(): Promise<NodeFacts['conntrack']> {
  const [count, max] = await Promise.all(
    ['count', 'max'].map((name) => textOf(`/proc/sys/net/netfilter/nf_conntrack_${name}`)),
  )
  if (count === undefined || max === undefined) throw new Error('the module nf_conntrack is not loaded')
  return { count: Number(count), max: Number(max) }
}

async function readOpenFiles(processes: NodeFacts['processes']): Promise<NodeFacts['openFiles']> {
  const kpng = processes.find(({ program }) => program === 'kpng')
  const ofKpng = kpng && (await textOf(`/proc/${kpng.pid}/limits`))
  const limits = ofKpng ?? (await readFile('/proc/self/limits', 'utf8'))
  const limit = /^Max open files\s+(\S+)/m.exec(limits)?.[1] ?? ''
  const of = kpng && ofKpng !== undefined ? `The running kpng (process ${kpng.pid})` : 'A program that this user starts'
  return { of, limit: limit === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(limit) }
}

async function readLeftovers(run: RunProgram): Promise<string[]> {
  const { found, failures } = await findKubeProxyLeftovers({ log: silentLog, run })
  // What was found is certain, whatever else could not be looked at.
  if (found.length === 0 && failures.length > 0) throw new Error(failures.join('; '))
  return found.map(({ mode, what, fields = {} }) => {
    const details = Object.entries(fields).map(([name, value]) => `${name} ${value}`)
    return `${what} of mode ${mode}: ${details.join(', ')}`
  })
}

export async function readIptables(run: RunProgram): Promise<SavedRules[]> {
  const found: SavedRules[] = []
  for (const family of ['iptables', 'ip6tables']) {
    for (const program of [`${family}-nft`, `${family}-legacy`, family]) {
      // `iptables` itself is one of the two, and is used only if neither is installed.
      if (program === family && found.some((saved) => saved.program.startsWith(`${family}-`))) break
      const saved = await run(`${program}-save`, [])
      if (saved !== undefined) found.push({ program, saved })
    }
  }
  return found
}

/** Undefined if there is no such file, or it may not be read. */
const textOf = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  )
