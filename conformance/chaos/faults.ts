import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { outputOf } from '@kpng/linux'
import { flushRules } from '../cases/foreign-rules.js'
import type { ApiServerSwitch } from '../feed/api-relay.js'
import type { Lab } from '../lab/lab.js'
import type { Proxiers } from '../runner/proxiers.js'
import type { ChaosApiServer } from './api-server.js'
import type { ChaosCluster } from './cluster.js'
import type { ProxyClock } from './proxy-clock.js'
import type { Random } from './random.js'
import type { SmallDisk } from './small-disk.js'
import type { Traffic } from './traffic.js'

/** What faults act on. */
export interface Scene {
  readonly random: Random
  readonly lab: Lab
  readonly cluster: ChaosCluster
  readonly api: ChaosApiServer
  readonly relay: ApiServerSwitch
  readonly proxiers: Proxiers
  readonly traffic: Traffic
  readonly disk: SmallDisk
  readonly clock: ProxyClock
  /** A process carries the data: what fails while it is away does not count. */
  readonly isProcess: boolean
  /** Feeds what the cluster is now. */
  feed(): void
}

export interface Fault {
  readonly name: string
  /** Begins, lasts, and ends. The proxy may still have to follow what changed meanwhile. */
  happen(scene: Scene): Promise<void>
  readonly kernelOnly?: boolean
  /** It takes more than a minute, so it is part of long runs only. */
  readonly isLong?: boolean
}

/** Changes with pauses between them, all of them chosen before the first pause. */
export async function changeAWhile({ random, cluster, feed }: Scene, count: number, longestMs: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const pauseMs = random.between(0, longestMs)
    cluster.change()
    feed()
    await sleep(pauseMs)
  }
}

const endProxy = (name: string, signal: 'SIGKILL' | 'SIGTERM'): Fault => ({
  name,
  async happen(scene) {
    const { random, proxiers, traffic, isProcess } = scene
    // At some step of a sync.
    await changeAWhile(scene, random.between(1, 3), 60)
    if (isProcess) traffic.excuse('the process is away')
    await proxiers.endMain(signal)
    await changeAWhile(scene, random.between(0, 3), 100)
  },
})

const apiServerAway: Fault = {
  name: 'the API server is away, then there is a burst',
  async happen(scene) {
    const { random, relay, cluster, feed } = scene
    const [changes, flips, services] = [random.between(1, 6), random.between(1, 10), random.between(50, 300)]
    relay.away()
    await changeAWhile(scene, changes, 800)
    for (let i = 0; i < flips; i++) {
      cluster.burst(services)
      feed()
    }
    relay.back()
    await changeAWhile(scene, 2, 200)
    cluster.burst(0)
    feed()
  },
}

const awayMs = 60_000
const changesAfterwards = 10_000

const apiServerAwayForLong: Fault = {
  name: `the API server is away for a minute, then there are ${changesAfterwards} changes`,
  isLong: true,
  async happen(scene) {
    const { random, relay, cluster, api, feed } = scene
    const services = random.between(300, 600)
    relay.away()
    for (let passedMs = 0; passedMs < awayMs; passedMs += 5000) {
      cluster.change()
      feed()
      await sleep(5000)
    }
    relay.back()
    const before = api.version
    while (api.version - before < changesAfterwards) {
      cluster.burst(services)
      feed()
      await sleep(random.between(0, 100))
    }
    cluster.burst(0)
    feed()
  },
}

const expiredWatches: Fault = {
  name: 'every watch is answered with 410',
  async happen(scene) {
    const rounds = scene.random.between(1, 4)
    for (let i = 0; i < rounds; i++) {
      scene.api.startExpiring()
      await changeAWhile(scene, 2, 400)
      scene.api.stopExpiring()
      await changeAWhile(scene, 1, 200)
    }
  },
}

const staleLists: Fault = {
  name: 'lists are answered from an earlier time',
  async happen(scene) {
    const [before, lists] = [scene.random.between(1, 5), scene.random.between(2, 6)]
    await changeAWhile(scene, before, 50)
    scene.api.answerStaleLists(lists)
    await changeAWhile(scene, 2, 300)
  },
}

const lateEvents: Fault = {
  name: 'events of one kind come later than those of others',
  async happen(scene) {
    const { random, api } = scene
    api.delayEvents({ services: random.between(0, 400), endpointslices: random.between(0, 400) })
    await changeAWhile(scene, 5, 150)
    await sleep(400)
    api.delayEvents({})
  },
}

/** So many objects of others in the kernel that events about them do not fit into the proxy's socket while it stands still. */
const floodScript = `
for round in 1 2 3 4; do
  { echo "table ip kit-flood { map m { type ipv4_addr : ipv4_addr; }"; echo "}"
    i=0; while [ $i -lt 4000 ]; do echo "add element ip kit-flood m { 10.$((i / 256)).$((i % 256)).1 : 10.0.0.1 }"; i=$((i + 1)); done
    echo "delete table ip kit-flood"
  } | nft -f -
done
`

const flood: Fault = {
  name: 'the proxy stands still while others change thousands of objects in the kernel',
  kernelOnly: true,
  async happen(scene) {
    const { lab, proxiers } = scene
    const pid = proxiers.mainPid
    if (pid !== undefined) process.kill(pid, 'SIGSTOP')
    try {
      await lab.run('node-a', 'sh', ['-e'], { input: floodScript, limitMs: 120_000 })
    } finally {
      if (pid !== undefined) process.kill(pid, 'SIGCONT')
    }
    await changeAWhile(scene, 2, 100)
  },
}

/** Does something while the proxy has a lower limit of a resource. */
async function limited(
  { proxiers }: Scene,
  resource: 'nofile' | 'data',
  limit: number,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const pid = proxiers.mainPid
  if (pid === undefined) return
  const prlimit = (...args: string[]) => outputOf('prlimit', ['--pid', `${pid}`, ...args], { limitMs: 10_000 })
  const usual = (await prlimit(`--${resource}`, '--output', 'SOFT', '--noheadings', '--raw')).trim()
  await prlimit(`--${resource}=${limit}:`)
  await meanwhile()
  // If it has ended, the run says so.
  await prlimit(`--${resource}=${usual}:`).catch(() => {})
}

const noFiles: Fault = {
  name: 'the proxy cannot open files',
  async happen(scene) {
    if (scene.isProcess) scene.traffic.excuse('the process cannot open connections')
    await limited(scene, 'nofile', 8, async () => {
      scene.relay.away()
      scene.relay.back()
      await changeAWhile(scene, 4, 400)
    })
  },
}

/** The memory for data that a process has, in bytes. */
function dataBytesOf(pid: number): number {
  const kb = /^VmData:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kb ?? 0) * 1024
}

const noMemory: Fault = {
  name: 'the proxy gets hardly any more memory, and there is a burst',
  async happen(scene) {
    const { random, proxiers, traffic, isProcess, cluster, feed } = scene
    const [spareBytes, services] = [random.between(0, 16) * 2 ** 20, random.between(100, 1500)]
    const pid = proxiers.mainPid
    if (pid === undefined) return
    if (isProcess) traffic.excuse('the process may be away')
    proxiers.letMainEnd(true)
    await limited(scene, 'data', dataBytesOf(pid) + spareBytes, async () => {
      cluster.burst(services)
      feed()
      await changeAWhile(scene, 4, 600)
    })
    cluster.burst(0)
    feed()
  },
}

const hourMs = 3_600_000

const clockJumps: Fault = {
  name: 'the clock of the proxy jumps forward and back',
  async happen(scene) {
    const { random, clock } = scene
    const jumps = random.between(1, 4)
    for (let i = 0; i < jumps; i++) {
      clock.jumpTo(random.between(-48 * hourMs, 48 * hourMs))
      await changeAWhile(scene, 2, 400)
    }
  },
}

const fullDisk: Fault = {
  name: "the disk of the proxy's state is full",
  async happen(scene) {
    await scene.disk.fill()
    await changeAWhile(scene, 4, 400)
    await scene.disk.free()
  },
}

const flush: Fault = {
  name: 'a firewall flushes all rules',
  async happen(scene) {
    scene.traffic.excuse('the rules are gone')
    await scene.lab.run('node-a', 'sh', ['-e'], { input: flushRules })
    await changeAWhile(scene, 1, 50)
  },
}

export const faults: readonly Fault[] = [
  endProxy('the proxy is killed', 'SIGKILL'),
  endProxy('the proxy is stopped', 'SIGTERM'),
  apiServerAway,
  apiServerAwayForLong,
  expiredWatches,
  staleLists,
  lateEvents,
  flood,
  noFiles,
  noMemory,
  fullDisk,
  clockJumps,
  flush,
]
