import type { Log } from '@kpng/api'

/** What of the services cannot be served. A problem is said when it comes up, and not again before it has gone. */
export class Complaints {
  readonly #log: Log
  readonly #said = new Map<string, ReadonlySet<string>>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Takes in all problems that a service has now. */
  note(service: string, problems: readonly string[]): void {
    const before = this.#said.get(service)
    const now = new Set(problems)
    for (const problem of now) {
      if (!before?.has(problem)) this.#log.warn('A part of a service is not served', { service, problem })
    }
    if (now.size > 0) this.#said.set(service, now)
    else if (before) this.#said.delete(service)
  }

  /** Forgets the services that are not there. */
  keep(services: ReadonlyMap<string, unknown>): void {
    for (const service of this.#said.keys()) if (!services.has(service)) this.#said.delete(service)
  }
}
