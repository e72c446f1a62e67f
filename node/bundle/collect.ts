import { existsSync } from 'node:fs'
import { arch, cpus, version as kernelVersion, release, totalmem } from 'node:os'
import { messageOf } from '@kpng/api'
import { isMissingProgram, outputOf } from '@kpng/linux'
import { askAgent } from '../agent-api/index.js'
import { type Report, reportText } from '../doctor/index.js'
import { readSysctls } from '../doctor/read-node.js'
import { pageAt } from '../doctor/read-proxies.js'
import { type BundleCommand, iptablesCommands, proxyRules, windowsCommands } from './platform-commands.js'
import { environmentText } from './secrets.js'
import type { ArchivedFile } from './tar.js'

export interface CollectOptions {
  readonly version: string
  readonly agentSocket: string
  /** Host and port of the metrics. */
  readonly metricsAddress: string
  /** The systemd unit whose log is read. */
  readonly unit: string
  /** What the doctor says, or why it says nothing. */
  readonly report: Report | string
  readonly env?: NodeJS.ProcessEnv
  readonly platform?: NodeJS.Platform
  /** Runs a program and returns what it printed. */
  readonly run?: Run
}

type Run = (program: string, args: readonly string[]) => Promise<string>

export interface Collected {
  readonly files: readonly ArchivedFile[]
  readonly missing: readonly { readonly what: string; readonly reason: string }[]
}

/** Reads everything that can be read. One thing that cannot does not stop another. */
export async function collect(options: CollectOptions): Promise<Collected> {
  const { platform = process.platform, run = runProgram } = options
  const files: ArchivedFile[] = []
  const missing: { what: string; reason: string }[] = []
  const add: Add = async (path, read) => {
    try {
      files.push({ path, text: await read() })
      return true
    } catch (error) {
      missing.push({ what: path, reason: messageOf(error) })
      return false
    }
  }
  await add('versions.json', () => json(versions(options.version)))
  await add('environment.txt', () => environmentText(options.env ?? process.env))
  await add('doctor.txt', () => doctorText(options.report))
  await add('doctor.json', () => json(typeof options.report === 'string' ? {} : options.report))
  for (const list of ['status', 'services', 'endpoints', 'frontends', 'changes']) {
    const isRead = await add(`agent/${list}.json`, async () => json(await askAgent(options.agentSocket, `/v1/${list}`)))
    // Without an agent, the others fail for the same reason.
    if (!isRead) break
  }
  await add('metrics.txt', () => metricsText(options.metricsAddress))
  if (platform === 'win32') await addOutputs(windowsCommands, add, run)
  else await addLinux(add, run, options.unit)
  return { files, missing }
}

/** Adds a file to the bundle. False: it could not be read, and the bundle says why. */
type Add = (path: string, read: () => string | Promise<string>) => Promise<boolean>

async function addLinux(add: Add, run: Run, unit: string): Promise<void> {
  await add('sysctls.txt', async () => lines(Object.entries(await readSysctls()).map((entry) => entry.join(' = '))))
  await add('rules/nft-tables.txt', () => run('nft', ['list', 'tables']))
  for (const table of await proxyTables(run)) {
    await add(`rules/nft-${table.replace(' ', '-')}.txt`, () => run('nft', ['list', 'table', ...table.split(' ')]))
  }
  await addOutputs(iptablesCommands, add, async (program, args) => proxyRules(await run(program, args)))
  await add('rules/ipset.txt', () => ifThere('/sys/module/ip_set', 'sets', () => run('ipset', ['list'])))
  await add('rules/ipvs.txt', () => ifThere('/proc/net/ip_vs', 'IPVS', () => run('ipvsadm', ['-S', '-n'])))
  await add('logs/kpng.txt', () => logText(run, unit))
}

async function addOutputs(commands: readonly BundleCommand[], add: Add, run: Run): Promise<void> {
  for (const { path, program, args } of commands) await add(path, () => run(program, args))
}

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`
const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join('')

const versions = (kpng: string) => ({
  kpng,
  nodeJs: process.version,
  platform: process.platform,
  arch: arch(),
  kernel: release(),
  kernelVersion: kernelVersion(),
  cores: cpus().length,
  memoryMiB: Math.round(totalmem() / 1_048_576),
  collectedAt: new Date().toISOString(),
})

function doctorText(report: Report | string): string {
  if (typeof report === 'string') throw new Error(report)
  return reportText(report)
}

async function metricsText(address: string): Promise<string> {
  const text = await pageAt(`http://${address}/metrics`)
  if (text === undefined) throw new Error(`nobody answers on ${address}; name the port with --metrics-address`)
  return text
}

/** The tables of kpng and of kube-proxy. The rules of others are nobody's business. */
async function proxyTables(run: Run): Promise<string[]> {
  const listed = await run('nft', ['list', 'tables']).catch(() => '')
  return [...listed.matchAll(/^table (\S+ (?:kpng\S*|kube-proxy))$/gm)].map(([, table]) => table as string)
}

/** These programs would load the kernel's module, which changes the machine. */
async function ifThere(path: string, what: string, read: () => Promise<string>): Promise<string> {
  if (!existsSync(path)) throw new Error(`the kernel has not loaded ${what}, so there are no rules of it`)
  return await read()
}

const mostLogLines = 10_000

async function logText(run: Run, unit: string): Promise<string> {
  const elsewhere = 'In a cluster: kubectl -n kube-system logs -l app.kubernetes.io/name=kpng --prefix --tail=-1'
  const text = await run('journalctl', ['-u', unit, '-n', String(mostLogLines), '--no-pager', '-o', 'short-iso']).catch(
    (error) => {
      throw new Error(`kpng does not keep its log, and the journal cannot be read: ${messageOf(error)} ${elsewhere}`)
    },
  )
  if (text.trim() === '' || /^-- No entries --$/m.test(text)) {
    throw new Error(`kpng does not keep its log, and the journal has nothing of the unit ${unit}. ${elsewhere}`)
  }
  return text
}

const longestRunMs = 60_000

async function runProgram(program: string, args: readonly string[]): Promise<string> {
  try {
    return await outputOf(program, args, { limitMs: longestRunMs, env: { ...process.env, LC_ALL: 'C' } })
  } catch (error) {
    throw isMissingProgram(error) ? new Error(`${program} is not installed`) : error
  }
}
