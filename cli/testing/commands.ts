import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import './compiled.js'

// The commands as users run them: real processes, from the built packages.

/** Where nodes keep their state: not where a kpng of this machine does. */
const stateFolder = mkdtempSync(join(tmpdir(), 'kpng-state-'))
process.once('exit', () => rmSync(stateFolder, { recursive: true, force: true }))

const bin = (name: string) => new URL(`../bin/${name}.js`, import.meta.url).pathname

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that is running. */
export class Running {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  stdout = ''
  stderr = ''

  constructor(
    program: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    input: 'ignore' | 'pipe' = 'ignore',
  ) {
    this.child = spawn(program, args, {
      env: { ...process.env, STATE_DIRECTORY: stateFolder, RUNTIME_DIRECTORY: stateFolder, ...env },
      stdio: [input, 'pipe', 'pipe'],
    })
    this.child.stdout?.on('data', (chunk) => {
      this.stdout += chunk
    })
    this.child.stderr?.on('data', (chunk) => {
      this.stderr += chunk
    })
    this.finished = new Promise((resolve) =>
      this.child.on('close', (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr })),
    )
  }

  /** Waits for a text on standard output or standard error. */
  async says(text: string | RegExp, timeoutMs = 90_000): Promise<void> {
    const deadline = Date.now() + timeoutMs
    const said = () => (typeof text === 'string' ? this.#all.includes(text) : text.test(this.#all))
    while (!said()) {
      if (Date.now() > deadline) throw new Error(`It never said ${text}. It said: ${this.#all}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Finished> {
    this.child.kill(signal)
    return await this.finished
  }

  get #all(): string {
    return this.stdout + this.stderr
  }
}

/** Starts commands and takes everything away at the end of a test. */
export class Commands {
  readonly #running: Running[] = []
  readonly #folders: string[] = []

  start(name: string, ...args: string[]): Running {
    return this.startWith({}, name, ...args)
  }

  startWith(env: NodeJS.ProcessEnv, name: string, ...args: string[]): Running {
    return this.#keep(new Running(process.execPath, [bin(name), ...args], env))
  }

  /** Another program, with a standard input to write to. */
  startProgram(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Running {
    return this.#keep(new Running(program, args, env, 'pipe'))
  }

  #keep(running: Running): Running {
    this.#running.push(running)
    return running
  }

  run(name: string, ...args: string[]): Promise<Finished> {
    return this.start(name, ...args).finished
  }

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'kpng-cli-'))
    this.#folders.push(folder)
    return folder
  }

  async cleanUp(): Promise<void> {
    await Promise.all(
      this.#running.splice(0).map((running) => (running.child.exitCode === null ? running.stop('SIGKILL') : undefined)),
    )
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  }
}
