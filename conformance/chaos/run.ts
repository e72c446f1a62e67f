import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { families as allFamilies, type Family, KpngError } from '@kpng/api'
import { clusterCidr, ipsOf } from '../addresses.js'
import { flushRules } from '../cases/foreign-rules.js'
import { relayApiServer } from '../feed/api-relay.js'
import { LabCgroups } from '../lab/cgroups.js'
import { startLab } from '../lab/lab.js'
import { fillPlaceholders } from '../proxies.js'
import { waitForMovedFlow } from '../runner/canary.js'
import { Pace } from '../runner/pace.js'
import { Proxiers } from '../runner/proxiers.js'
import { ChaosApiServer } from './api-server.js'
import { ChaosCluster, VisibleTime } from './cluster.js'
import { CpuWait } from './cpu-wait.js'
import { rulesIn, wrongServers } from './end-state.js'
import { type Fault, faults, type Scene } from './faults.js'
import { fullConntrack } from './full-conntrack.js'
import { ProxyClock } from './proxy-clock.js'
import { Random } from './random.js'
import { SmallDisk } from './small-disk.js'
import { Traffic } from './traffic.js'

export interface ChaosOptions {
  /**
   * The command of the proxy under test, as in `ConformanceOptions`; objects come from an API server, so it needs `{kubeconfig}`.
   * `{stateCache}` is the path of a file that it may keep its state in, on a disk that gets full.
   */
  readonly proxy: readonly string[]
  /** How long faults happen, in milliseconds. What is checked afterwards takes some seconds more. */
  readonly durationMs: number
  /** The same seed makes the same faults and changes in the same order. */
  readonly seed: number
  /** A process carries the data itself: connections may fail while it is away. Default: rules in the kernel do. */
  readonly isProcess?: boolean
  /** Faults that all programs of this machine feel happen too: only for a machine that nobody else uses. Default false. */
  readonly wholeMachine?: boolean
  /** Default: both. */
  readonly families?: readonly Family[]
  readonly agentCommand?: readonly string[]
  readonly log: (line: string) => void
  readonly signal: AbortSignal
}

export interface ChaosReport {
  readonly seed: number
  readonly faults: number
  readonly requests: number
  /** What must not have happened, as sentences. */
  readonly violations: readonly string[]
}

/** How long the proxy may take to follow once a fault is over, on a machine that is not busy. */
const followTimeoutMs = 60_000

/** Runs of this length or more have the faults that take longer than a minute. */
const longRunMs = 600_000

/** Plays faults while clients ask all the time. Resolves also if something was violated. Nothing of the lab is left. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = await mkdtemp(join(tmpdir(), 'kpng-chaos-'))
  const closers: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  try {
    return await play(options, folder, closers)
  } finally {
    for (const close of closers.reverse()) await Promise.resolve(close()).catch(() => {})
  }
}

async function play(options: ChaosOptions, folder: string, closers: (() => unknown)[]): Promise<ChaosReport> {
  const { seed, durationMs, families = allFamilies, isProcess = false, wholeMachine = false, log, signal } = options
  const random = new Random(seed)
  const cgroups = options.proxy.some((part) => part.includes('{cgroup}')) ? new LabCgroups() : undefined
  if (cgroups) closers.push(() => cgroups.remove())
  const lab = await startLab(options.agentCommand, ['TCP', 'UDP'], cgroups)
  closers.push(() => lab.close())
  const api = await ChaosApiServer.start()
  closers.push(() => api.close())
  const server = { host: '127.0.0.1', port: api.port }
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigOf(api.port))
  const relay = await relayApiServer(lab, { server, address: server.host, path: kubeconfig }, folder)
  closers.push(() => relay.close())
  const disk = await SmallDisk.mount(folder)
  closers.push(() => disk.unmount())
  const main = fillPlaceholders(options.proxy, {
    ...{ node: 'node-a', clusterCidr: ipsOf(clusterCidr).join(','), kubeconfig, manifests: undefined },
    ...{ cgroup: cgroups?.ofNode('node-a'), bpffs: join(folder, 'bpf'), stateCache: join(disk.path, 'state') },
  })
  const clock = new ProxyClock(folder)
  const proxiers = new Proxiers(lab, { main, onNodeB: [], specialised: undefined, env: clock.env })
  closers.push(() => proxiers.stop())
  await proxiers.prepare({})

  const cpuWait = new CpuWait(() => proxiers.mainPid)
  const cluster = new ChaosCluster(random, new VisibleTime(cpuWait))
  const pace = new Pace(lab)
  let round = 0
  const feed = () => api.apply([...cluster.objects(), ...proxiers.canaryObjects(round)])
  const servedNow = async (): Promise<boolean> => {
    for (const proxier of proxiers.needed()) {
      const tookMs = await proxier.programmed({ lab, pace, families, signal }, round, followTimeoutMs)
      if (tookMs === undefined) return false
    }
    // The Service of the canary has been followed; the endpoints of another one show that slices are, too.
    return (await waitForMovedFlow({ lab, pace, families, signal, timeoutMs: followTimeoutMs }, round)) !== undefined
  }
  /** Time in which the proxy got no processor does not count. */
  const served = async (): Promise<boolean> => {
    for (let countedMs = 0; countedMs < followTimeoutMs; ) {
      const [startMs, waitedMs] = [performance.now(), cpuWait.ms]
      if (await servedNow()) return true
      if (proxiers.isMainOver || signal.aborted) return false
      countedMs += performance.now() - startMs - (cpuWait.ms - waitedMs)
    }
    return false
  }
  const follow = async (): Promise<boolean> => {
    round++
    feed()
    return served()
  }
  if (!(await follow())) throw new KpngError('unavailable', `The proxy served nothing. ${proxiers.notes.join('\n')}`)

  const traffic = new Traffic({ lab, pace, cluster, families, cpuWait })
  const scene: Scene = { random, lab, cluster, api, relay, proxiers, traffic, disk, clock, isProcess, feed }
  const isPossible = ({ kernelOnly = false, isLong = false }: Fault) =>
    !(kernelOnly && isProcess) && !(isLong && durationMs < longRunMs)
  const possible = [...(wholeMachine ? [fullConntrack] : []), ...faults.filter(isPossible)]
  const violations: string[] = []
  const start = performance.now()
  let count = 0
  while (performance.now() - start < durationMs && violations.length === 0 && !signal.aborted) {
    const fault = count < possible.length ? (possible[count] as Fault) : random.pick(possible)
    count++
    log(`${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${count}: ${fault.name}`)
    await happen(fault, scene)
    let hasFollowed = await follow()
    if (!hasFollowed && proxiers.hasMainEnded()) {
      log('           The proxy has ended, and is started again.')
      hasFollowed = await follow()
    }
    if (!hasFollowed) {
      violations.push(`After fault ${count}, the proxy did not follow within ${followTimeoutMs / 1000} s.`)
    }
    proxiers.letMainEnd(false)
    traffic.endExcuse()
    cluster.time.resume()
    await quietly(scene)
    if (proxiers.hasEnded) violations.push(`The proxy ended by itself at fault ${count} (${fault.name}).`)
    violations.push(...new Set(traffic.violations.splice(0).map((each) => `Fault ${count} (${fault.name}): ${each}`)))
  }
  await traffic.end()
  if (signal.aborted) throw new KpngError('unavailable', 'The run was interrupted; the lab is removed.')
  if (violations.length === 0) {
    violations.push(...(await endState({ scene, families, follow, served })))
  }
  if (violations.length > 0) log([...proxiers.notes, `The proxy said last:\n${proxiers.mainSaid}`].join('\n'))
  return { seed, faults: count, requests: traffic.asked, violations }
}

async function happen(fault: Fault, scene: Scene): Promise<void> {
  scene.cluster.time.pause()
  await fault.happen(scene)
}

/** Changes with nothing wrong beside them: now every connection must go where it should within a second. */
async function quietly({ random, cluster, feed }: Scene): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const pauseMs = random.between(100, 600)
    cluster.change()
    feed()
    await sleep(pauseMs)
  }
}

interface EndStateOptions {
  readonly scene: Scene
  readonly families: readonly Family[]
  readonly follow: () => Promise<boolean>
  readonly served: () => Promise<boolean>
}

/** The end state must be what the objects say, and what a proxy makes of them that starts on an empty machine. */
async function endState({ scene, families, follow, served }: EndStateOptions): Promise<string[]> {
  const { lab, cluster, proxiers, isProcess } = scene
  if (!(await follow())) return ['The proxy did not follow the last change.']
  const wrong = await wrongServers(lab, cluster, families)
  if (isProcess) return wrong
  const atEnd = await rulesIn(lab)
  await proxiers.endMain('SIGTERM')
  await lab.run('node-a', 'sh', ['-e'], { input: flushRules })
  if (!(await served())) return [...wrong, 'A fresh start of the proxy did not serve.']
  const fresh = await rulesIn(lab)
  const [onlyAtEnd, onlyFresh] = [without(atEnd, fresh), without(fresh, atEnd)]
  if (onlyAtEnd.length + onlyFresh.length > 0) {
    const some = [
      ...onlyAtEnd.slice(0, 10).map((rule) => `- ${rule}`),
      ...onlyFresh.slice(0, 10).map((rule) => `+ ${rule}`),
    ]
    wrong.push(`The rules at the end (-) are not those of a fresh start (+):\n${some.join('\n')}`)
  }
  return wrong
}

function without(rules: readonly string[], others: readonly string[]): string[] {
  const left = new Map<string, number>()
  for (const rule of others) left.set(rule, (left.get(rule) ?? 0) + 1)
  return rules.filter((rule) => {
    const count = left.get(rule) ?? 0
    left.set(rule, count - 1)
    return count <= 0
  })
}

const kubeconfigOf = (port: number): string => `apiVersion: v1
kind: Config
current-context: chaos
contexts: [{ name: chaos, context: { cluster: chaos, user: chaos } }]
clusters: [{ name: chaos, cluster: { server: 'http://127.0.0.1:${port}' } }]
users: [{ name: chaos, user: {} }]
`
