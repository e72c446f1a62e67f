import type { Log } from '@kpng/api'

/**
 * Keys to look at, each once however often it was added, in a later turn of the event loop: a controller must never write
 * while a change is still being told to the others.
 */
export class WorkQueue {
  private readonly waiting = new Set<string>()
  private readonly attempts = new Map<string, number>()
  private readonly retries = new Set<NodeJS.Timeout>()
  private scheduled = false
  private closed = false

  constructor(
    private readonly name: string,
    private readonly work: (key: string) => void,
    private readonly log: Log,
  ) {}

  add(key: string): void {
    if (this.closed) return
    this.waiting.add(key)
    if (this.scheduled) return
    this.scheduled = true
    setImmediate(() => this.run())
  }

  private run(): void {
    this.scheduled = false
    // What is added meanwhile waits for the next turn, so that requests are served in between.
    const keys = [...this.waiting]
    this.waiting.clear()
    for (const key of keys) {
      if (this.closed) return
      try {
        this.work(key)
        this.attempts.delete(key)
      } catch (error) {
        this.retry(key, error)
      }
    }
  }

  private retry(key: string, error: unknown): void {
    const attempt = (this.attempts.get(key) ?? 0) + 1
    this.attempts.set(key, attempt)
    this.log.warn('A controller failed and will try again', { controller: this.name, object: key, attempt, error })
    this.after(Math.min(30_000, 50 * 2 ** attempt), key)
  }

  /** Adds a key later. */
  after(milliseconds: number, key: string): void {
    const timer = setTimeout(() => {
      this.retries.delete(timer)
      this.add(key)
    }, milliseconds)
    this.retries.add(timer)
  }

  close(): void {
    this.closed = true
    for (const timer of this.retries) clearTimeout(timer)
    this.waiting.clear()
  }
}
