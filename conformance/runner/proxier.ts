import { KpngError } from '@kpng/api'
import { type Canary, type Wait, waitForCanary } from './canary.js'
import { ProxyProcess } from './proxy.js'

/** When a proxy never served its canary, later rounds do not wait for it as long: the table is to come in reasonable time. */
const hopelessTimeoutMs = 1000

/** One of the proxies of a run: the one under test, or the specialised one beside it. */
export class Proxier {
  readonly title: string
  readonly canary: Canary
  readonly #process: ProxyProcess
  #hasServed = false
  #rounds = 0

  constructor(title: string, canary: Canary, command: readonly string[], namespace: string) {
    this.title = title
    this.canary = canary
    this.#process = ProxyProcess.start(command, namespace)
  }

  stop(): Promise<void> {
    return this.#process.stop()
  }

  /** It served its canary at least once. */
  get hasServed(): boolean {
    return this.#hasServed
  }

  /** It did not live to the end of the run. */
  get hasEnded(): boolean {
    return this.#process.ended !== undefined
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
    const timeoutMs = this.#hasServed || this.#rounds++ === 0 ? programTimeoutMs : hopelessTimeoutMs
    const tookMs = await Promise.race([
      waitForCanary({ ...wait, timeoutMs }, this.canary, round),
      this.#process.closed.then(() => undefined),
    ])
    this.#hasServed ||= tookMs !== undefined
    if (!this.#hasServed && this.hasEnded) {
      throw new KpngError(
        'unavailable',
        `The ${this.title} ${this.#process.ended} before it served anything. It said last:\n${this.#said}`,
      )
    }
    return tookMs
  }

  /** What people should know of it after the run. */
  get notes(): string[] {
    return [
      ...(this.hasEnded
        ? [`The ${this.title} ${this.#process.ended} during the run. It said last:\n${this.#said}`]
        : []),
      ...(this.#hasServed ? [] : [`The ${this.title} never served the canary. It said last:\n${this.#said}`]),
    ]
  }

  get #said(): string {
    return this.#process.said || '(nothing)'
  }
}
