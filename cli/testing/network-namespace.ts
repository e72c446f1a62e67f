import { execFileSync, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Lab, whyNoLab } from '@kpng/linux/testing'
import './compiled.js'

const kpng = fileURLToPath(new URL('../bin/kpng.js', import.meta.url))

export type Machine =
  /** Root, with every program of this machine. */
  | 'whole'
  /** A user who may change nothing. */
  | 'without rights'
  /** Root, in a PID namespace of its own, as in a container. */
  | 'without its processes'
  /** Root, and no other programs than these are installed. */
  | { readonly programs: readonly string[] }

/** A network namespace of a test's own, and `kpng` in it as users run it: from the built packages. */
export class NetworkNamespace {
  #lab: Lab<'machine'> | undefined

  async add(): Promise<void> {
    this.#lab = await Lab.start({ hosts: ['machine'] })
  }

  async remove(): Promise<void> {
    await this.#lab?.close()
  }

  /** What a program prints in it. */
  inside(program: string, args: readonly string[], input = ''): string {
    const [command, ...words] = this.#inside([program, ...args])
    return execFileSync(command, words, { input, encoding: 'utf8', stdio: 'pipe' })
  }

  works(program: string, ...args: string[]): boolean {
    const [command, ...words] = this.#inside([program, ...args])
    return spawnSync(command, words, { stdio: 'ignore' }).status === 0
  }

  kpng(args: readonly string[], machine: Machine = 'whole'): SpawnSyncReturns<string> {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-programs-'))
    try {
      const [command, ...words] = this.#inside([...surroundings(machine, folder), process.execPath, kpng, ...args])
      return spawnSync(command, words, { encoding: 'utf8' })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  /** Starts a process with this name that does nothing. */
  async start(name: string, around: readonly string[] = []): Promise<{ readonly pid: number; end(): Promise<void> }> {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-programs-'))
    symlinkSync(execFileSync('sh', ['-c', 'command -v sleep'], { encoding: 'utf8' }).trim(), join(folder, name))
    // `inside` and what is around it replace themselves by the program, so that the process has its id.
    const [command, ...words] = this.#inside([...around, join(folder, name), 'infinity'])
    const child = spawn(command, words, { stdio: 'ignore' })
    const ended = once(child, 'exit')
    while (!readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').startsWith(join(folder, name))) await setImmediate()
    return {
      pid: child.pid as number,
      end: async () => {
        child.kill()
        await ended
        rmSync(folder, { recursive: true })
      },
    }
  }

  #inside(command: readonly string[]): [string, ...string[]] {
    if (!this.#lab) throw new Error('There is no namespace yet. Call add() first.')
    return this.#lab.inside('machine', command) as [string, ...string[]]
  }
}

/** Why kernel tests that need these programs are skipped; undefined if they are not. The reason is printed. */
export function whySkipped(suite: string, programs: readonly string[]): string | undefined {
  const why = whyNoLab(...programs) ?? whyNoTables(programs)
  if (why !== undefined) console.warn(`SKIPPED: ${suite}: ${why}`)
  return why
}

/** Some variants of iptables are installed but do not work with the kernel. */
function whyNoTables(programs: readonly string[]): string | undefined {
  const unusable = programs.filter((program) => program.includes('tables') && !canReadTables(program))
  return unusable.length > 0 ? `${unusable.join(', ')} cannot read the table nat` : undefined
}

/** Whether a variant of iptables works in a new namespace. */
export const canReadTables = (program: string): boolean =>
  spawnSync('unshare', ['--net', program, '-t', 'nat', '-S'], { stdio: 'ignore' }).status === 0

function surroundings(machine: Machine, folder: string): string[] {
  if (machine === 'whole') return []
  if (machine === 'without rights')
    return ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all']
  if (machine === 'without its processes') return ['unshare', '--pid', '--fork', '--mount-proc']
  for (const program of machine.programs) {
    symlinkSync(
      execFileSync('sh', ['-c', 'command -v "$0"', program], { encoding: 'utf8' }).trim(),
      join(folder, program),
    )
  }
  return ['env', `PATH=${folder}`]
}
