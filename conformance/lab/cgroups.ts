import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { cgroupTree } from '@kpng/linux/bpf'
import { isAlive } from '@kpng/linux/testing'
import { type Host, hosts } from '../addresses.js'

/** The hosts whose processes run on a node: the node itself and its pods. */
const nodes = {
  'node-a': ['node-a', 'pod-a', 'a1', 'a2'],
  'node-b': ['node-b', 'pod-b', 'b1', 'b2'],
} as const satisfies Readonly<Record<string, readonly Host[]>>

export type Node = keyof typeof nodes
const nodeNames = Object.keys(nodes) as Node[]

let count = 0

/**
 * A cgroup for each host of the lab. Those of a node are below one cgroup, to which its proxy may attach programs; the machine's other
 * processes are in none of them.
 */
export class LabCgroups {
  readonly #lab: string
  readonly #folders: readonly string[]
  readonly #folderOf: (host: Host) => string

  constructor() {
    const tree = cgroupTree()
    if (!tree) {
      throw new KpngError('unsupported', 'This proxy needs a cgroup tree of version 2, and none is mounted. Mount one.')
    }
    removeLeftovers(tree.path)
    const lab = join(tree.path, `kpng-lab-${process.pid}-${++count}`)
    const parentOf = (host: Host) =>
      nodeNames.find((node) => (nodes[node] as readonly Host[]).includes(host)) ?? 'others'
    this.#lab = lab
    this.#folderOf = (host) => join(lab, parentOf(host), host)
    const parents = [...nodeNames, 'others'].map((name) => join(lab, name))
    this.#folders = [lab, ...parents, ...hosts.map(this.#folderOf)]
    for (const folder of this.#folders) mkdirSync(folder)
  }

  /** The cgroup of a node, as every process of the machine finds it, whatever is mounted where: `ip netns exec` hides the mounts below /sys. */
  ofNode(node: Node): string {
    return `/proc/${process.pid}/root${join(this.#lab, node)}`
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
