import type { Log } from '@kpng/api'
import type { Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import { isScheduler, schedulers as known, schedulerAnnotation } from './options.js'

/** Which Service has which scheduler. A scheduler that cannot be used is replaced by the default one, and the log says so. */
export class Schedulers {
  readonly #default: string
  readonly #probe: (scheduler: string) => Promise<number>
  readonly #log: Log
  /** Only Services that chose another one than the default. */
  readonly #chosen = new Map<string, string>()
  readonly #usable = new Map<string, boolean>()

  /** @param probe resolves with 0 if the kernel has a scheduler */
  constructor(scheduler: string, probe: (scheduler: string) => Promise<number>, log: Log) {
    this.#default = scheduler
    this.#probe = probe
    this.#log = log
  }

  /** The scheduler that gives a client the same endpoint each time; without its module, the default one. */
  async hashScheduler(): Promise<string> {
    if (this.#default === 'sh' || this.#default === 'mh') return this.#default
    if ((await this.#probe('sh')) === 0) return 'sh'
    this.#log.warn(
      'The kernel has no IPVS scheduler sh: clients in the cluster lose session affinity at external addresses of Services with policy Local. Load the module ip_vs_sh',
    )
    return this.#default
  }

  of(service: string): string {
    return this.#chosen.get(service) ?? this.#default
  }

  /** Reads the annotations of what changed, and resolves with the Services that have another scheduler than before. */
  async apply(view: NodeView, changes: Changes): Promise<string[]> {
    const paths = changes.full ? new Set([...this.#chosen.keys(), ...view.services.keys()]) : changes.services.keys()
    const changed: string[] = []
    for (const path of paths) {
      const wanted = await this.#wantedBy(path, view.services.get(path))
      if (wanted === this.of(path)) continue
      if (wanted === this.#default) this.#chosen.delete(path)
      else this.#chosen.set(path, wanted)
      changed.push(path)
    }
    return changed
  }

  async #wantedBy(path: string, item: ServiceEndpoints | undefined): Promise<string> {
    const wanted = item?.service.annotations[schedulerAnnotation]
    if (wanted === undefined || wanted === this.#default) return this.#default
    if (!this.#usable.has(wanted)) {
      this.#usable.set(wanted, isScheduler(wanted) && (await this.#probe(wanted)) === 0)
      if (!this.#usable.get(wanted)) {
        const next = isScheduler(wanted) ? `Load the module ip_vs_${wanted}` : `Give one of ${known.join(', ')}`
        this.#log.warn(`The kernel has no IPVS scheduler that a Service asks for; it gets the default one. ${next}`, {
          ...{ service: path, scheduler: wanted, default: this.#default },
        })
      }
    }
    return this.#usable.get(wanted) ? wanted : this.#default
  }
}
