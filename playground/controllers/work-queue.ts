import type { Log } from '@kpng/api'

/**
 * Keys to look at, each once however often it was added, in a later turn of the event loop: a controller must never write
 * while a change is still being told to the others.
 */
export class WorkQueue {
  readonly #waiting = new Set<string>()
  readonly #attempts = new Map<string, number>()
  readonly #retries = new Set<NodeJS.Timeout>()
  #scheduled = false
  #closed = false
  readonly #name: string
  readonly #work: (key: string) => void
  readonly #log: Log

  constructor(name: string, work: (key: string) => void, log: Log) {
    this.#name = name
    this.#work = work
    this.#log = log
  }

  add(key: string): void {
    if (this.#closed) return
    this.#waiting.add(key)
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    this.#scheduled = false
    // What is added meanwhile waits for the next turn, so that requests are served in between.
    const keys = [...this.#waiting]
    this.#waiting.clear()
    for (const key of keys) {
      if (this.#closed) return
      try {
        this.#work(key)
        this.#attempts.delete(key)
      } catch (error) {
        this.#retry(key, error)
      }
    }
  }

  #retry(key: string, error: unknown): void {
    const attempt = (this.#attempts.get(key) ?? 0) + 1
    this.#attempts.set(key, attempt)
    this.#log.warn('A controller failed and will try again', { controller: this.#name, object: key, attempt, error })
    this.after(Math.min(30_000, 50 * 2 ** attempt), key)
  }

  /** Adds a key later. */
  after(milliseconds: number, key: string): void {
    const timer = setTimeout(() => {
      this.#retries.delete(timer)
      this.add(key)
    }, milliseconds)
    this.#retries.add(timer)
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#retries) clearTimeout(timer)
    this.#waiting.clear()
  }
}
