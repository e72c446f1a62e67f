import { execFileSync, type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import './compiled.js'

const kpng = fileURLToPath(new URL('../bin/kpng.js', import.meta.url))

/** Whether a program is there and takes these arguments. */
export const works = (program: string, ...args: string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0

export type Machine =
  /** Root, with every program of this machine. */
  | 'whole'
  /** A user who may change nothing. */
  | 'without rights'
  /** Root, and no other programs than these are installed. */
  | { readonly programs: readonly string[] }

/** A network namespace of a test's own, and `kpng` in it as users run it: from the built packages. */
export class NetworkNamespace {
  readonly #name: string

  constructor(name: string) {
    this.#name = `${name}-${process.pid}`
  }

  add(): void {
    execFileSync('ip', ['netns', 'add', this.#name], { stdio: 'pipe' })
  }

  remove(): void {
    execFileSync('ip', ['netns', 'del', this.#name])
  }

  /** What a program prints in it. */
  inside(program: string, args: readonly string[], input = ''): string {
    const words = ['netns', 'exec', this.#name, program, ...args]
    return execFileSync('ip', words, { input, encoding: 'utf8', stdio: 'pipe' })
  }

  works(program: string, ...args: string[]): boolean {
    return works('ip', 'netns', 'exec', this.#name, program, ...args)
  }

  kpng(args: readonly string[], machine: Machine = 'whole'): SpawnSyncReturns<string> {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-programs-'))
    try {
      const words = ['netns', 'exec', this.#name, ...surroundings(machine, folder), process.execPath, kpng, ...args]
      return spawnSync('ip', words, { encoding: 'utf8' })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  /** Why kernel tests that need these programs cannot run here, or undefined. */
  lacking(programs: readonly string[]): string | undefined {
    if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'not root on Linux'
    for (const program of programs) if (!works(program, '--version')) return `${program} is not installed`
    if (!works('ip', 'netns', 'add', this.#name)) return 'no network namespaces here'
    try {
      const variants = programs.filter(
        (program) => program.includes('tables') && !this.works(program, '-t', 'nat', '-S'),
      )
      return variants.length > 0 ? `${variants.join(', ')} cannot read the table nat` : undefined
    } finally {
      this.remove()
    }
  }
}

function surroundings(machine: Machine, folder: string): string[] {
  if (machine === 'whole') return []
  if (machine === 'without rights')
    return ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all']
  for (const program of machine.programs) {
    symlinkSync(
      execFileSync('sh', ['-c', 'command -v "$0"', program], { encoding: 'utf8' }).trim(),
      join(folder, program),
    )
  }
  return ['env', `PATH=${folder}`]
}
