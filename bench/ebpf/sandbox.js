// A network namespace, cgroups and a bpf file system for one benchmark. Everything is removed at the end.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { cgroupTree } from '@kpng/linux/bpf'

const source = fileURLToPath(new URL('traffic.c', import.meta.url))
const name = `kpng-bench-ebpf-${process.pid}`

export class Sandbox {
  /** @param cgroups names of cgroups to make */
  constructor(cgroups) {
    this.folder = mkdtempSync(join(tmpdir(), 'kpng-bench-ebpf-'))
    this.traffic = join(this.folder, 'traffic')
    this.bpffs = join(this.folder, 'bpf')
    this.children = []
    execFileSync('gcc', ['-O2', '-pthread', '-o', this.traffic, source])
    this.root = join(cgroupTree().path, name)
    this.cgroups = Object.fromEntries(cgroups.map((each) => [each, join(this.root, each)]))
    for (const folder of [this.root, ...Object.values(this.cgroups)]) mkdirSync(folder)
    execFileSync('ip', ['netns', 'add', name])
    this.ip('link set lo up', 'link add v0 type veth peer name v1', 'link set v0 up', 'link set v1 up')
    this.ip(...[1, 2, 3, 4].map((last) => `address add 10.9.9.${last}/24 dev v0`))
    // Packets to addresses of Services need a route.
    this.ip('route add default via 10.9.9.9 dev v0 onlink')
  }

  ip(...lines) {
    execFileSync('ip', ['-n', name, '-batch', '-'], { input: `${lines.join('\n')}\n` })
  }

  /** The words that run a command in the namespace. `ip netns exec` would hide the cgroups. */
  inside(command, core) {
    const pinned = core === undefined ? [] : ['taskset', '-c', String(core)]
    return [...pinned, 'nsenter', `--net=/run/netns/${name}`, ...command]
  }

  /**
   * Starts a command in the namespace and in a cgroup. A socket belongs to the cgroup in which it was opened, so the command starts in it.
   * @returns the child, with `lines`, its output
   */
  start(command, { cgroup, core } = {}) {
    const [program, ...words] = this.inside(command, core)
    const enter = 'echo $$ > "$1" && shift && exec "$@"'
    const args = cgroup
      ? ['sh', ['-c', enter, 'sh', join(this.cgroups[cgroup], 'cgroup.procs'), program, ...words]]
      : [program, words]
    const child = spawn(...args, { stdio: ['pipe', 'pipe', 'inherit'] })
    child.lines = createInterface({ input: child.stdout })
    this.children.push(child)
    return child
  }

  /** Runs a command to its end. Returns its line of JSON. */
  async run(command, options) {
    const child = this.start(command, options)
    const [[line]] = await Promise.all([once(child.lines, 'line'), once(child, 'close')])
    return JSON.parse(line)
  }

  /** Starts servers, and waits until they listen. */
  async serve(address, port, count, core) {
    const child = this.start([this.traffic, 'serve', address, String(port), String(count)], { core })
    await once(child.lines, 'line')
  }

  async remove() {
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    execFileSync('ip', ['netns', 'delete', name])
    try {
      execFileSync('umount', [this.bpffs], { stdio: 'ignore' })
    } catch {
      // It was not mounted.
    }
    rmSync(this.folder, { recursive: true, force: true })
    for (const folder of [...Object.values(this.cgroups), this.root]) rmdirSync(folder)
  }

  /** Moves this process into a cgroup, or back to the root. */
  enter(cgroup) {
    writeFileSync(join(cgroup ? this.cgroups[cgroup] : cgroupTree().path, 'cgroup.procs'), String(process.pid))
  }
}

export const quantile = (values, share) => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}
