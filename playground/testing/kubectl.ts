import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Playground } from '../index.js'

/** The kubectl to test with; another version can be given in KUBECTL. */
const program = process.env.KUBECTL ?? 'kubectl'

export interface Outcome {
  code: number
  stdout: string
  stderr: string
}

/** Undefined when there is no kubectl: tests are then skipped, and it is said why. */
export function findKubectl(): string | undefined {
  const { status } = spawnSync(program, ['version', '--client'], { stdio: 'ignore' })
  if (status === 0) return program
  console.warn(
    `SKIPPED: the tests that drive the playground with kubectl, because "${program}" cannot be run. Install kubectl.`,
  )
  return undefined
}

/** kubectl with a playground's kubeconfig and a cache of its own. */
export class Kubectl {
  readonly #folder = mkdtempSync(join(tmpdir(), 'kpng-kubectl-'))
  readonly #playground: Playground

  constructor(playground: Playground) {
    this.#playground = playground
  }

  start(args: readonly string[], environment: Record<string, string> = {}): ChildProcess {
    const env = { ...process.env, KUBECONFIG: this.#playground.kubeconfigPath, ...environment }
    return spawn(program, ['--cache-dir', join(this.#folder, 'cache'), ...args], { env })
  }

  /** Runs to the end; `input` goes to standard input (`-f -`). */
  run(args: readonly string[], input?: unknown, environment: Record<string, string> = {}): Promise<Outcome> {
    const child = this.start(args, environment)
    let stdout = ''
    let stderr = ''
    child.stdout?.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr?.on('data', (chunk) => {
      stderr += chunk
    })
    child.stdin?.end(input === undefined ? '' : typeof input === 'string' ? input : JSON.stringify(input))
    return new Promise((resolve) => child.on('close', (code) => resolve({ code: code ?? -1, stdout, stderr })))
  }

  /** Standard output of a command that must succeed. */
  async ok(args: readonly string[], input?: unknown, environment: Record<string, string> = {}): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, input, environment)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`)
    return stdout
  }

  /** Standard error of a command that must fail. */
  async refused(args: readonly string[], input?: unknown): Promise<string> {
    const { code, stdout, stderr } = await this.run(args, input)
    if (code === 0) throw new Error(`kubectl ${args.join(' ')} should have failed: ${stdout}`)
    return stderr
  }

  async json(args: readonly string[]) {
    return JSON.parse(await this.ok([...args, '-o', 'json']))
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
