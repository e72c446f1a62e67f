import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { KpngError } from '@kpng/api'
import type { AgentMethods } from './agent/methods.js'
import type { Answer, Methods } from './agent/requests.js'

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** A process inside a namespace. It acts as server and as client there; its methods say what else it can do. */
export class Agent<M extends Methods = AgentMethods> {
  readonly name: string
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #complaint = ''
  #hasEnded = false

  private constructor(name: string, child: ChildProcess) {
    this.name = name
    this.#child = child
  }

  /**
   * Starts an agent with a command line. Resolves when it accepts requests.
   * @param errors where its standard error goes. Default: into the error if it ends.
   */
  static start<M extends Methods = AgentMethods>(
    name: string,
    [command = '', ...args]: readonly string[],
    { errors = 'pipe' }: { errors?: 'pipe' | 'inherit' } = {},
  ): Promise<Agent<M>> {
    const env = { PATH: process.env.PATH }
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', errors], env })
    return new Agent<M>(name, child).#whenReady()
  }

  /** Its process. */
  get pid(): number {
    return this.#child.pid as number
  }

  /** Sends one request. Several may be in progress at once. */
  call<Name extends keyof M>(method: Name, ...args: Parameters<M[Name]>): Promise<Awaited<ReturnType<M[Name]>>> {
    if (this.#hasEnded) return Promise.reject(this.#gone())
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject })
      this.#child.stdin?.write(`${JSON.stringify({ id, method, args })}\n`)
    })
  }

  /** Kills the process. Resolves when it is gone. */
  async stop(): Promise<void> {
    if (this.#hasEnded) return
    const closed = new Promise((resolve) => this.#child.once('close', resolve))
    this.#child.kill('SIGKILL')
    await closed
  }

  #whenReady(): Promise<Agent<M>> {
    const { stdin, stdout, stderr } = this.#child
    return new Promise((resolve, reject) => {
      const end = (error?: Error) => {
        this.#hasEnded = true
        if (error) this.#complaint += error.message
        reject(this.#gone())
        for (const waiting of this.#waiting.values()) waiting.reject(this.#gone())
        this.#waiting.clear()
      }
      this.#child.on('error', end)
      this.#child.on('close', () => end())
      stdin?.on('error', () => {})
      stderr?.on('data', (chunk) => {
        this.#complaint += chunk
      })
      if (!stdout) return
      createInterface({ input: stdout }).on('line', (line) => {
        const answer = JSON.parse(line) as Answer
        if ('ready' in answer) resolve(this)
        else this.#settle(answer)
      })
    })
  }

  #settle(answer: Exclude<Answer, { ready: true }>): void {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if ('error' in answer) waiting?.reject(new KpngError('refused', `The agent in ${this.name}: ${answer.error}.`))
    else waiting?.resolve(answer.result)
  }

  #gone(): KpngError {
    const said = this.#complaint.trim()
    return new KpngError('unavailable', `The agent in ${this.name} ended${said === '' ? '' : `: ${said}`}.`)
  }
}

/** The agent of this package. Node cannot run the TypeScript source, so this is always the compiled one. */
export function agentCommand(): readonly string[] {
  const places = ['agent/main.js', '../dist/lab/agent/main.js'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const found = places.find((path) => existsSync(path))
  if (found === undefined) {
    throw new KpngError('unsupported', `The agent ${places[1]} is not built. Run "npm run build" first.`)
  }
  return [process.execPath, found]
}
