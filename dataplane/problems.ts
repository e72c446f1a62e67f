import type { Log } from '@kpng/api'

interface ServiceProblems {
  /** Those that the Service has by itself. */
  readonly own: readonly string[]
  /** Addresses that belong to another Service. */
  readonly conflicts: readonly string[]
}

/** Logs what of a Service is not served: each problem once, and again if it comes back. */
export class Problems {
  readonly #log: Log
  readonly #known = new Map<string, ServiceProblems>()

  constructor(log: Log) {
    this.#log = log
  }

  /** @param own undefined: as before */
  set(service: string, { own, conflicts }: { own: readonly string[] | undefined; conflicts: readonly string[] }): void {
    const before = this.of(service)
    const problems = { own: own ?? this.#known.get(service)?.own ?? [], conflicts }
    if (problems.own.length + conflicts.length > 0) this.#known.set(service, problems)
    else this.#known.delete(service)
    for (const reason of this.of(service)) {
      if (!before.includes(reason)) this.#log.warn('A part of a Service is not served', { service, reason })
    }
  }

  of(service: string): readonly string[] {
    const { own = [], conflicts = [] } = this.#known.get(service) ?? {}
    return [...own, ...conflicts]
  }
}
