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
