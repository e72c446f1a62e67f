import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { bundle, programPath } from '../../../linux/testing/bundle.js'

/** A proxy that runs in a network namespace, from a TypeScript file. */
export class ProxyProcess {
  readonly #program: string
  readonly #namespace: string
  #child: ChildProcess | undefined

  /** @param program a bundled file */
  constructor(program: string, namespace: string) {
    this.#program = program
    this.#namespace = namespace
  }

  static async bundled(entry: URL, namespace: string): Promise<ProxyProcess> {
    const program = programPath('proxy')
    await bundle(entry, program)
    return new ProxyProcess(program, namespace)
  }

  /** Starts it, and waits for a line of it. */
  async start(args: readonly string[], line: string): Promise<void> {
    const child = this.#spawn(args)
    this.#child = child
    for await (const said of createInterface({ input: child.stdout as NodeJS.ReadableStream }))
      if (said === line) return
    throw new Error('The proxy ended.')
  }

  /** Runs it to its end. */
  async run(...args: readonly string[]): Promise<void> {
    const [code] = await once(this.#spawn(args), 'exit')
    if (code !== 0) throw new Error(`The proxy ended with code ${code}.`)
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.#program, { force: true })
  }

  #spawn(args: readonly string[]): ChildProcess {
    return spawn('ip', ['netns', 'exec', this.#namespace, process.execPath, this.#program, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  }
}
