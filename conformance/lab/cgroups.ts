import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { cgroupTree } from '@kpng/linux/bpf'
import { isAlive } from '@kpng/linux/testing'
import { type Host, hosts } from '../addresses.js'

/** The hosts whose processes run on the proxy's node: the node itself and its pods. */
const onNode: readonly Host[] = ['node-a', 'pod-a', 'a1', 'a2']

let count = 0

/**
 * A cgroup for each host of the lab. Those of the proxy's node are below one cgroup, to which the proxy may attach programs; the machine's other
 * processes are in none of them.
 */
export class LabCgroups {
  /** The cgroup of the proxy's node, as every process of the machine finds it, whatever is mounted where. */
  readonly ofNode: string
  readonly #folders: readonly string[]
  readonly #folderOf: (host: Host) => string

  constructor() {
    const tree = cgroupTree()
    if (!tree) {
      throw new KpngError('unsupported', 'This proxy needs a cgroup tree of version 2, and none is mounted. Mount one.')
    }
    removeLeftovers(tree.path)
    const lab = join(tree.path, `kpng-lab-${process.pid}-${++count}`)
    const [node, others] = [join(lab, 'node'), join(lab, 'others')]
    this.#folderOf = (host) => join(onNode.includes(host) ? node : others, host)
    this.#folders = [lab, node, others, ...hosts.map(this.#folderOf)]
    for (const folder of this.#folders) mkdirSync(folder)
    // `ip netns exec` hides the mounts below /sys.
    this.ofNode = `/proc/${process.pid}/root${node}`
  }

  /** Puts a host's process into its cgroup. Sockets belong to the cgroup in which they were opened, so it must not have any yet. */
  add(host: Host, pid: number): void {
    writeFileSync(join(this.#folderOf(host), 'cgroup.procs'), String(pid))
  }

  /** When the hosts' processes have ended. */
  remove(): void {
    for (const folder of [...this.#folders].reverse()) rmdirSync(folder)
  }
}

/** What labs whose process was killed left behind. */
function removeLeftovers(root: string): void {
  for (const name of readdirSync(root)) {
    const pid = /^kpng-lab-(\d+)-\d+$/.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const below = readdirSync(join(root, name), { recursive: true, withFileTypes: true })
    const folders = below.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
    try {
      for (const folder of [...folders, join(root, name)].sort().reverse()) rmdirSync(folder)
    } catch {
      // Something still runs there. The next lab tries again.
    }
  }
}
