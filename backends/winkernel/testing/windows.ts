import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
// @ts-expect-error: plain JavaScript, as all scripts are
import { windowsKoffi, windowsNode } from '../../../scripts/testing/windows-node.js'

// Node for Windows under wine, with the stub of computenetwork.dll.

const root = fileURLToPath(new URL('../../../', import.meta.url))
const here = fileURLToPath(new URL('.', import.meta.url))
const compiler = 'x86_64-w64-mingw32-gcc'

/** Why the stub cannot run here; undefined if it can. */
export function whyNoWine(): string | undefined {
  if (process.platform === 'win32') return 'the stub must not take the place of the library of a real Windows'
  for (const [program, name] of [
    ['wine', 'wine'],
    [compiler, 'mingw (gcc-mingw-w64-x86-64)'],
  ] as const) {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' })
    } catch {
      return `${name} is not installed`
    }
  }
  try {
    windowsNode()
    windowsKoffi()
  } catch (error) {
    return `Node or koffi for Windows cannot be had: ${(error as Error).message}`
  }
  return undefined
}

/** A Windows in a folder, with the stub as its computenetwork.dll. */
export class Wine {
  readonly #folder: string
  readonly #env: NodeJS.ProcessEnv

  constructor(folder: string) {
    this.#folder = folder
    this.#env = { ...process.env, WINEPREFIX: join(folder, 'wine'), WINEDEBUG: '-all' }
    // Node refuses to run on the Windows version that wine claims to be at first.
    spawnSync('wine', ['winecfg', '-v', 'win10'], { env: this.#env, stdio: 'ignore' })
    const system = join(folder, 'wine', 'drive_c', 'windows', 'system32')
    const dll = (name: string, ...args: string[]) =>
      execFileSync(compiler, ['-O1', '-Wall', '-Werror', '-shared', '-o', join(system, name), ...args])
    dll('computenetwork.dll', join(here, 'stub.c'), '-lole32', '-lrpcrt4', '-lws2_32', '-luuid')
    const nothing = join(folder, 'nothing.c')
    writeFileSync(nothing, '')
    dll('vmcompute.dll', nothing, join(here, 'vmcompute.def'))
    writeFileSync(join(folder, 'koffi.node'), windowsKoffi())
  }

  /** Runs a TypeScript file of this folder with the path of a file to write to. Returns what it wrote there. */
  async run(name: string, timeoutMs: number): Promise<unknown> {
    await build({
      entryPoints: [join(here, name)],
      outfile: join(this.#folder, 'run.cjs'),
      ...{ bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' },
      conditions: ['kpng-source'],
      // koffi's library is a file beside the program, as for an executable.
      alias: { koffi: join(root, 'scripts', 'package', 'koffi-library.js') },
    })
    copyFileSync(windowsNode(), join(this.#folder, 'node.exe'))
    // Under wine Node's output must go to a file: a pipe fails with EBADF.
    const output = join(this.#folder, 'output')
    const file = openSync(output, 'w')
    const { status } = spawnSync('wine', ['node.exe', 'run.cjs', 'result.json'], {
      ...{ cwd: this.#folder, env: this.#env, stdio: ['ignore', file, file], timeout: timeoutMs },
    })
    if (status !== 0) throw new Error(`Node under wine ended with ${status}: ${readFileSync(output, 'utf8')}`)
    return JSON.parse(readFileSync(join(this.#folder, 'result.json'), 'utf8'))
  }

  /** wine leaves its services running; those of this folder end, and nobody else's. */
  close(): void {
    spawnSync('wine', ['wineboot', '--end-session', '--kill'], { env: this.#env, stdio: 'ignore' })
  }
}
