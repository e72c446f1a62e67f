import { KpngError, type Log } from '@kpng/api'
import { keptKeys, selectionForProxy } from '../../kubernetes/index.js'
import type { Store } from '../../store/index.js'
import { Skips } from '../skips.js'
import type { KubeConnection } from './credentials/index.js'
import {
  endpointSlicesKind,
  type KubeResource,
  nodesKind,
  serviceCidrsKind,
  servicesKind,
  type WatchedKind,
} from './kinds.js'
import { type EventType, Reflector, type ReflectorTiming } from './reflector/index.js'
import { StoreWriter } from './store-writer.js'

/** Counted up while the source runs: what the API server sent, and how many revisions of the store that came to. */
export interface KubeCounters {
  apiEvents: number
  storeRevisions: number
}

export interface WatchKubeOptions {
  readonly store: Store
  readonly log: Log
  /** The way to the API server, from `loadConnection`. It stays open: who opened it closes it. */
  readonly connection: KubeConnection
  /** Ends the source. */
  readonly signal: AbortSignal
  /** Where objects that make no sense are reported. Default: to the log. */
  readonly skips?: Skips
  /** Empty (the default): the cluster's default proxy. Otherwise only what carries this name (checklist 2). */
  readonly serviceProxyName?: string
  /** Watch no Node but this one: for a store that only this node's view is made of (checklist 7). Default: all Nodes. */
  readonly nodeName?: string
  /** Globs of the label and annotation keys that are passed on. Default: none. */
  readonly serviceLabels?: readonly string[]
  readonly serviceAnnotations?: readonly string[]
  readonly nodeLabels?: readonly string[]
  readonly nodeAnnotations?: readonly string[]
  /** Called for each object that the API server sends (an object in a list is ADDED), and for each deletion. */
  readonly onEvent?: (resource: KubeResource, type: EventType) => void
  readonly counters?: KubeCounters
  readonly timing?: Partial<ReflectorTiming>
  /** Objects a page, where the server has no streaming lists. Default 500. */
  readonly pageSize?: number
}

/**
 * Keeps the store equal to what the API server has, until the signal is aborted. The store becomes synced when Services,
 * EndpointSlices and Nodes have each been read completely. Failures are logged and retried, for ever.
 */
export async function watchKube(options: WatchKubeOptions): Promise<void> {
  const selection = selectionForProxy(checkedProxyName(options.serviceProxyName))
  const skips = options.skips ?? new Skips(options.log)
  const counters = options.counters ?? { apiEvents: 0, storeRevisions: 0 }
  const { server, described } = options.connection
  options.log.info('Watching Kubernetes', { server, credentials: described })

  const run = <T>({ resource, mapping }: WatchedKind<T>): Promise<void> => {
    const { connection, store, log, timing, pageSize } = options
    const handler = new StoreWriter({ store, skips, mapping, onRevision: () => counters.storeRevisions++ })
    const onEvent = (type: EventType) => {
      counters.apiEvents++
      options.onEvent?.(resource.name, type)
    }
    const reflector = new Reflector({
      connection,
      resource,
      handler,
      log,
      onEvent,
      ...(timing && { timing }),
      ...(pageSize !== undefined && { pageSize }),
    })
    return reflector.run(options.signal)
  }
  await Promise.all([
    run(servicesKind(selection, keptKeys(options.serviceLabels, options.serviceAnnotations))),
    run(endpointSlicesKind(selection, Date.now())),
    run(nodesKind(keptKeys(options.nodeLabels, options.nodeAnnotations), options.nodeName)),
    ...(selection.takesServiceCidrs ? [run(serviceCidrsKind())] : []),
  ])
}

function checkedProxyName(name = ''): string {
  if (name === '' || /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name)) return name
  throw new KpngError(
    'usage',
    `The service proxy name ${JSON.stringify(name)} cannot be the value of a label. Use up to 63 letters, digits, "-", "_" and ".".`,
  )
}
