import type { globalv1, localv1 } from '@kpng/api'

/** Something new or changed. `set` says what kind of thing `message` is. */
export type SetItem =
  | { readonly set: localv1.Set.SERVICES; readonly path: string; readonly message: localv1.Service }
  | { readonly set: localv1.Set.ENDPOINTS; readonly path: string; readonly message: localv1.Endpoint }
  | { readonly set: localv1.Set.SERVICE_CIDRS; readonly path: string; readonly message: localv1.ServiceCIDR }
  | { readonly set: localv1.Set.NODES; readonly path: string; readonly message: globalv1.Node }

/** Something that is gone. */
export interface DeleteItem {
  /** What kind of thing it was. */
  readonly set: localv1.Set
  /** Its path, as it was set. */
  readonly path: string
}

/** When the change of a service's endpoints began in the cluster. */
export interface Trigger {
  /** `namespace/name` */
  readonly service: string
  /** Unix time in milliseconds, by the clock of the controller that wrote the EndpointSlice. */
  readonly unixMs: number
}

/** One step of a node's view: first the sets, then the deletes, and the view is whole again. */
export interface ChangeSet {
  /** The whole state follows; what was known before is void. */
  readonly reset: boolean
  /** What is new or changed. May be read once only. */
  readonly sets: Iterable<SetItem>
  /** What is gone. May be read once only. Empty with `reset`. */
  readonly deletes: Iterable<DeleteItem>
  /** When the changes of endpoints began in the cluster. Empty if the source does not say. */
  readonly triggers: readonly Trigger[]
  /** Where the time went so far, by the core's clock; not for the whole state. */
  readonly timeline?: Timeline
}

/** How a change came here. Unix times in milliseconds; where several changes came together, those of the first. */
export interface Timeline {
  /** The store's revision. */
  readonly revision: number
  /** The source had it; missing where the source does not say. */
  readonly receivedAtMs: number | undefined
  /** It was in the store. */
  readonly committedAtMs: number
  /** It was worked out for this node. */
  readonly viewedAtMs: number
}

export interface ChangeSetRequest {
  /** The node whose view is wanted. */
  readonly nodeName: string
  /** Sets beyond services and endpoints. Default none. */
  readonly extraSets?: readonly localv1.Set[]
  /** Whether a server should say where the time went. Default: it does not. A store in this process always does. */
  readonly timeline?: boolean
}

/**
 * Where change sets come from: a kpng server over gRPC, or the store in this process. Asking for the next one says that the
 * last one is done with; what changes in between arrives together. Ends when the signal is aborted.
 */
export type ChangeSetSource = (request: ChangeSetRequest, signal: AbortSignal) => AsyncIterable<ChangeSet>
