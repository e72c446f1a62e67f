import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cgroupTree, loadBpf } from '@kpng/linux/bpf'
import { enterNewNamespace, whySkipped } from '@kpng/linux/testing'

/** Why tests on the kernel cannot run here; undefined if they can. */
export function whyNoEbpf(): string | undefined {
  const why = whySkipped('the eBPF backend on a real kernel', 'nft')
  if (why !== undefined) return why
  if (cgroupTree() === undefined) {
    console.warn('SKIPPED: the eBPF backend on a real kernel: there is no cgroup v2 here.')
    return 'there is no cgroup v2'
  }
  return undefined
}

let count = 0

/** A cgroup and a bpf file system of a test's own. Nothing is ever attached to a cgroup that others use. */
export class Sandbox {
  readonly cgroup: string
  readonly bpffs: string
  readonly #root: string

  private constructor(root: string, cgroup: string, bpffs: string) {
    this.#root = root
    this.cgroup = cgroup
    this.bpffs = bpffs
  }

  static async make(): Promise<Sandbox> {
    const { path: root } = cgroupTree() as { path: string }
    const cgroup = join(root, `kpng-test-${process.pid}-${++count}`)
    mkdirSync(cgroup)
    const bpffs = mkdtempSync(join(tmpdir(), 'kpng-bpffs-'))
    const sys = await loadBpf()
    sys.mountBpffs(bpffs)
    return new Sandbox(root, cgroup, bpffs)
  }

  /** Moves this process into the cgroup and into a new network namespace: sockets that it opens from now on are those of a client. */
  async enter(): Promise<void> {
    await enterNewNamespace()
    writeFileSync(join(this.cgroup, 'cgroup.procs'), String(process.pid))
  }

  /** Moves everything out of the cgroup. */
  leave(): void {
    for (const pid of processesIn(this.cgroup)) {
      try {
        writeFileSync(join(this.#root, 'cgroup.procs'), pid)
      } catch {
        // It has ended.
      }
    }
  }

  remove(): void {
    this.leave()
    spawnSync('umount', ['--lazy', this.bpffs])
    rmSync(this.bpffs, { recursive: true, force: true })
    rmdirSync(this.cgroup)
  }
}

function processesIn(cgroup: string): string[] {
  try {
    return readFileSync(join(cgroup, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
