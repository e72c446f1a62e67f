import { type ChildProcess, spawn } from 'node:child_process'
import { KpngError } from '@kpng/api'
import { type Canary, type Wait, waitForCanary } from './canary.js'

/** When a proxy never served its canary, later rounds do not wait for it as long: the table is to come in reasonable time. */
const hopelessTimeoutMs = 1000

const linesKept = 40

/** One of the proxies of a run, the one under test or the specialised one beside it: a process in a network namespace. */
export class Proxier {
  readonly title: string
  readonly #canary: Canary | undefined
  readonly #process: ChildProcess
  readonly #closed: Promise<void>
  readonly #lines: string[] = []
  /** How it ended. */
  #ended: string | undefined
  #isStopping = false
  /** What is done to it may end it. */
  mayEnd = false
  #hasServed = false
  #rounds = 0

  /** @param canary undefined if it serves no packets itself, as a core */
  constructor(
    title: string,
    canary: Canary | undefined,
    command: readonly string[],
    namespace: string,
    env?: NodeJS.ProcessEnv,
  ) {
    this.title = title
    this.#canary = canary
    this.#process = spawn('ip', ['netns', 'exec', namespace, ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    this.#closed = new Promise((resolve) => {
      this.#process.on('error', (error) => {
        this.#ended = error.message
        resolve()
      })
      this.#process.on('close', (code, signal) => {
        this.#ended ??= signal ? `ended by ${signal}` : `ended with code ${code}`
        resolve()
      })
    })
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (chunk) => this.#keep(String(chunk)))
  }

  #keep(text: string): void {
    this.#lines.push(...text.split('\n').filter((line) => line !== ''))
    this.#lines.splice(0, this.#lines.length - linesKept)
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** Lets it end in its own way for two seconds. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#isStopping ||= this.#ended === undefined
    if (this.#ended !== undefined) return
    this.#process.kill(signal)
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 2000)
    await this.#closed
    clearTimeout(timer)
  }

  /** It served its canary at least once. */
  get hasServed(): boolean {
    return this.#hasServed
  }

  get isOver(): boolean {
    return this.#ended !== undefined
  }

  /** It did not live to the end of the run, and nothing was done to it that explains it. */
  get hasEnded(): boolean {
    return !this.#isStopping && !this.mayEnd && this.isOver
  }

  /**
   * Resolves with how long it took to program a round, in milliseconds, or with undefined if it did not in time. Rejects if the
   * proxy ended before it ever served its canary.
   */
  async programmed(
    wait: Omit<Wait, 'timeoutMs'>,
    round: number,
    programTimeoutMs: number,
  ): Promise<number | undefined> {
    if (!this.#canary) return 0
    const timeoutMs = this.#hasServed || this.#rounds++ === 0 ? programTimeoutMs : hopelessTimeoutMs
    const tookMs = await Promise.race([
      waitForCanary({ ...wait, timeoutMs }, this.#canary, round),
      this.#closed.then(() => undefined),
    ])
    this.#hasServed ||= tookMs !== undefined
    if (!this.#hasServed && this.hasEnded) {
      throw new KpngError(
        'unavailable',
        `The ${this.title} ${this.#ended} before it served anything. It said last:\n${this.said}`,
      )
    }
    return tookMs
  }

  /** What people should know of it after the run. */
  get notes(): string[] {
    return [
      ...(this.hasEnded ? [`The ${this.title} ${this.#ended} during the run. It said last:\n${this.said}`] : []),
      ...(this.#hasServed || !this.#canary
        ? []
        : [`The ${this.title} never served the canary. It said last:\n${this.said}`]),
    ]
  }

  /** Its last lines. */
  get said(): string {
    return this.#lines.join('\n') || '(nothing)'
  }
}
