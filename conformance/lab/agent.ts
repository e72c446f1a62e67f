import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Answer, Hello, Outcome, Request } from '../agent/protocol.js'
import type { Role } from '../agent/system.js'
import { ConformanceError } from '../error.js'

interface Waiting {
  readonly resolve: (result: Outcome | null) => void
  readonly reject: (error: Error) => void
}

/** A process of ours inside one namespace, that serves and asks there. */
export class Agent {
  readonly name: string
  readonly #process: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #complaint = ''
  #ended = false

  private constructor(name: string, process: ChildProcessWithoutNullStreams) {
    this.name = name
    this.#process = process
  }

  /** Resolves when the agent has made the settings of its namespace. */
  static start(name: string, namespace: string, role: Role, command = agentCommand()): Promise<Agent> {
    const args = ['netns', 'exec', namespace, ...command, name, role]
    const agent = new Agent(name, spawn('ip', args, { stdio: ['pipe', 'pipe', 'pipe'], env: {} }))
    return agent.#hello()
  }

  probe(request: Omit<Extract<Request, { op: 'probe' }>, 'op'>): Promise<Outcome> {
    return this.ask({ op: 'probe', ...request }) as Promise<Outcome>
  }

  ask(request: Request): Promise<Outcome | null> {
    if (this.#ended) return Promise.reject(this.#gone())
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#process.stdin.write(`${JSON.stringify({ id, ...request })}\n`)
    })
  }

  /** Resolves when the process is gone. */
  async stop(): Promise<void> {
    if (this.#ended) return
    const closed = new Promise((resolve) => this.#process.once('close', resolve))
    this.#process.kill('SIGKILL')
    await closed
  }

  #hello(): Promise<Agent> {
    this.#process.stderr.on('data', (chunk) => {
      this.#complaint += chunk
    })
    this.#process.stdin.on('error', () => {})
    return new Promise((resolve, reject) => {
      createInterface({ input: this.#process.stdout }).on('line', (line) => {
        const message = JSON.parse(line) as Answer | Hello
        if ('ready' in message) resolve(this)
        else this.#settle(message)
      })
      const end = () => {
        this.#ended = true
        const error = this.#gone()
        reject(error)
        for (const { reject: rejectOne } of this.#waiting.values()) rejectOne(error)
        this.#waiting.clear()
      }
      this.#process.on('error', end)
      this.#process.on('close', end)
    })
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if ('error' in answer)
      waiting?.reject(new ConformanceError('failed', `The agent in ${this.name}: ${answer.error}.`))
    else waiting?.resolve(answer.result)
  }

  #gone(): ConformanceError {
    const said = this.#complaint.trim()
    return new ConformanceError('failed', `The agent in ${this.name} ended${said === '' ? '' : `: ${said}`}.`)
  }
}

/** Beside this file once compiled; from the sources the compiled one is taken, since Node must be able to run it. */
function agentCommand(): readonly string[] {
  const places = ['../agent/main.js', '../dist/agent/main.js'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const found = places.find((path) => existsSync(path))
  if (found === undefined) {
    throw new ConformanceError('unsupported', `The agent ${places[1]} is not built. Run "npm run build" first.`)
  }
  return [process.execPath, found]
}
