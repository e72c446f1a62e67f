import { readdir, readFile, readlink } from 'node:fs/promises'
import { get } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { type AgentStatus, messageOf } from '@kpng/api'
import { agentSocketPath, askAgent } from '../agent-api/index.js'
import type { AgentFact, ProxyPort, ProxyProcess } from './node-facts.js'

/** The proxies that run in this network namespace, as far as /proc shows them. */
export async function readProcesses(): Promise<ProxyProcess[]> {
  const own = await namespaceOf('self')
  const found: ProxyProcess[] = []
  for (const name of await readdir('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) continue
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    const proxy = proxyOf(line.split('\0'))
    // A process of another user does not show its namespace: it is taken for one of this node.
    if (proxy && ((await namespaceOf(pid)) ?? own) === own) found.push({ pid, ...proxy })
  }
  return found
}

const namespaceOf = (pid: number | 'self'): Promise<string | undefined> =>
  readlink(`/proc/${pid}/ns/net`).catch(() => undefined)

/** Which proxy a command line starts. Undefined: none. */
export function proxyOf(words: readonly string[]): Omit<ProxyProcess, 'pid'> | undefined {
  if (basename(words[0] ?? '') === 'kube-proxy') return { program: 'kube-proxy' }
  const isKpng = words.slice(0, 3).some((word) => ['kpng', 'kpng.js'].includes(basename(word)))
  const backend = words.find((word) => /^to-(?:nft|iptables|ipvs|ebpf|userspacelin)$/.test(word))
  if (!isKpng || backend === undefined || words.includes('--dry-run')) return undefined
  const serviceProxyName = flagIn(words, '--service-proxy-name')
  return { program: 'kpng', backend, ...(serviceProxyName === undefined ? {} : { serviceProxyName }) }
}

function flagIn(words: readonly string[], flag: string): string | undefined {
  const index = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`))
  return words[index]?.includes('=') ? words[index].slice(flag.length + 1) : index < 0 ? undefined : words[index + 1]
}

/** Who answers on the ports that kube-proxy and kpng share. Ports where nobody answers are left out. */
export async function readPorts(): Promise<ProxyPort[]> {
  const [metrics, health] = await Promise.all([
    pageAt('http://127.0.0.1:10249/metrics'),
    pageAt('http://127.0.0.1:10256/metrics'),
  ])
  const owner = ownerOf(metrics ?? '')
  return [
    ...(metrics === undefined ? [] : [{ port: 10249, owner }]),
    // The health port does not say who serves it. If the metrics do, it is the same program.
    ...(health === undefined || metrics === undefined ? [] : [{ port: 10256, owner }]),
  ]
}

export const ownerOf = (metrics: string): ProxyPort['owner'] =>
  /^kpng_/m.test(metrics) ? 'kpng' : /^kubeproxy_/m.test(metrics) ? 'kube-proxy' : 'another program'

const longestPageMs = 3000

/** The text of a page, whatever its status. Undefined if nobody answers. */
export function pageAt(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const asked = get(url, { timeout: longestPageMs, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks).toString()))
      response.on('error', () => resolve(undefined))
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(undefined))
  })
}

/** Asks every agent of this machine for its status. */
export async function readAgents(sockets?: readonly string[]): Promise<AgentFact[]> {
  return await Promise.all((sockets ?? (await socketsHere())).map(agentAt))
}

async function socketsHere(): Promise<string[]> {
  const folder = dirname(agentSocketPath())
  const names = await readdir(folder).catch(() => [])
  return names.filter((name) => /^agent(?:-.*)?\.sock$/.test(name)).map((name) => join(folder, name))
}

async function agentAt(path: string): Promise<AgentFact> {
  try {
    const { version, lastSync, source } = await askAgent<AgentStatus>(path, '/v1/status', 5000)
    return {
      path,
      version,
      ...(lastSync?.error === undefined ? {} : { syncError: lastSync.error }),
      ...(source?.stale ? { stale: source.reason ?? 'no reason is known' } : {}),
    }
  } catch (error) {
    return { path, problem: messageOf(error) }
  }
}
