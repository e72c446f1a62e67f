import type { globalv1, localv1 } from '@kpng/api'
import type { ServiceEndpoints, Timeline, Trigger } from './backend.js'

/** One step of a node's view: the Services that changed, as they are now. */
export interface ChangeSet {
  /** This is the whole view: a Service that is not in it is gone. False: other Services are as they were. */
  readonly reset: boolean
  /** By `namespace/name`. Undefined: the Service is gone. */
  readonly services: ReadonlyMap<string, ServiceEndpoints | undefined>
  /** The node itself as it is now, whether it changed or not. Undefined: the source does not know it. */
  readonly node: globalv1.Node | undefined
  /** The ranges that cluster IPs come from as they are now, by name, whether they changed or not. */
  readonly serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR>
  /** When the changes of endpoints began in the cluster. Empty if the source does not say. */
  readonly triggers: readonly Trigger[]
  /** Where the time went so far, by the core's clock; not for the whole view. */
  readonly timeline?: Timeline
}

export interface ChangeSetRequest {
  /** The node whose view is wanted. */
  readonly nodeName: string
  /** Whether a server should say where the time went. Default: it does not. A store in this process always does. */
  readonly timeline?: boolean
}

/**
 * Where change sets come from: a kpng server over gRPC, or the store in this process. Asking for the next one says that the
 * last one is done with; what changes in between arrives together. Ends when the signal is aborted.
 */
export type ChangeSetSource = (request: ChangeSetRequest, signal: AbortSignal) => AsyncIterable<ChangeSet>

/** The endpoints of a Service in the order of their names, which are unique in it. It never changes: a changed copy takes its place. */
export class NamedEndpoints {
  static readonly none = new NamedEndpoints([], [])
  readonly #names: readonly string[]
  /** In the order of the names. */
  readonly messages: readonly localv1.Endpoint[]

  private constructor(names: readonly string[], messages: readonly localv1.Endpoint[]) {
    this.#names = names
    this.messages = messages
  }

  /**
   * Only what changed is looked for and sorted: a Service may have ten thousand endpoints.
   * @param changed by name; undefined for endpoints that are gone
   */
  with(changed: ReadonlyMap<string, localv1.Endpoint | undefined>): NamedEndpoints {
    if (changed.size === 0) return this
    const names: string[] = []
    const messages: localv1.Endpoint[] = []
    let done = 0
    const copyUntil = (end: number) => {
      for (; done < end; done++) {
        names.push(this.#names[done] as string)
        messages.push(this.messages[done] as localv1.Endpoint)
      }
    }
    for (const name of [...changed.keys()].sort()) {
      copyUntil(this.#indexOf(name, done))
      if (this.#names[done] === name) done++
      const message = changed.get(name)
      if (!message) continue
      names.push(name)
      messages.push(message)
    }
    copyUntil(this.#names.length)
    return new NamedEndpoints(names, messages)
  }

  /** Where a name is, or would be, from an index on. */
  #indexOf(name: string, from: number): number {
    let [low, high] = [from, this.#names.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#names[middle] as string) < name) low = middle + 1
      else high = middle
    }
    return low
  }
}
