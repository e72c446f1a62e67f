import { setImmediate } from 'node:timers/promises'
import { KpngError, type Log } from '@kpng/api'
import type { SourceStatus } from '@kpng/client'
import { keptKeys, selectionForProxy } from '../../kubernetes/index.js'
import type { Store } from '../../store/index.js'
import { Skips } from '../skips.js'
import type { KubeConnection } from './client/index.js'
import {
  endpointSlicesKind,
  type KubeResource,
  nodesKind,
  serviceCidrsKind,
  servicesKind,
  type WatchedKind,
} from './kinds.js'
import { PendingWrites } from './pending-writes.js'
import { batches, type EventType, type ReflectorTiming } from './reflector/index.js'

export interface WatchKubeOptions {
  readonly store: Store
  readonly log: Log
  /** The connection to the API server, from `loadConnection`. The caller closes it. */
  readonly connection: KubeConnection
  /** Ends the source. */
  readonly signal: AbortSignal
  /** Where unusable objects are reported. Default: to the log. */
  readonly skips?: Skips
  /** Empty (the default): the cluster's default proxy. Otherwise only Services with this service-proxy-name (checklist 2). */
  readonly serviceProxyName?: string
  /** Watch only this Node, for a store that serves only this node (checklist 7). Default: all Nodes. */
  readonly nodeName?: string
  /** Globs of the label and annotation keys that are passed on. Default: none. */
  readonly serviceLabels?: readonly string[]
  readonly serviceAnnotations?: readonly string[]
  readonly nodeLabels?: readonly string[]
  readonly nodeAnnotations?: readonly string[]
  /** Called for each object that the API server sends (an object in a list is ADDED), and for each deletion. */
  readonly onEvent?: (resource: KubeResource, type: EventType) => void
  /** Kept up to date with how each watch is, by the name of the resource. Default: nobody is told. */
  readonly status?: SourceStatus
  readonly timing?: Partial<ReflectorTiming>
  /** Objects per page, if the server has no streaming lists. Default 500. */
  readonly pageSize?: number
}

/**
 * Keeps the store equal to what the API server has, until the signal is aborted. The store is synced when Services,
 * EndpointSlices and Nodes have each been read completely. Failures are logged and retried without end.
 */
export async function watchKube(options: WatchKubeOptions): Promise<void> {
  const selection = selectionForProxy(checkedProxyName(options.serviceProxyName))
  const { server, described } = options.connection
  options.log.info('Watching Kubernetes', { server, credentials: described })
  const skips = options.skips ?? new Skips(options.log)
  const follow = <T>(kind: WatchedKind<T>) => followKind(kind, skips, options)
  await Promise.all([
    follow(servicesKind(selection, keptKeys(options.serviceLabels, options.serviceAnnotations))),
    follow(endpointSlicesKind(selection, options.store, Date.now())),
    follow(nodesKind(keptKeys(options.nodeLabels, options.nodeAnnotations), options.nodeName)),
    ...(selection.takesServiceCidrs ? [follow(serviceCidrsKind())] : []),
  ])
}

/** So many objects of the first list are written in one update. */
const objectsPerUpdate = 500

/** Parsing yields to the event loop after this time. */
const longestTurnMs = 8

/** Writes one kind of object to the store: batches of events from the API server become updates of the store. */
async function followKind<T>(kind: WatchedKind<T>, skips: Skips, options: WatchKubeOptions): Promise<void> {
  const { store, connection, log, signal, onEvent, status, timing, pageSize } = options
  const { resource, storeKind } = kind
  const writes = new PendingWrites(kind, skips)
  let hasListed = false
  for await (const { events, state } of batches({
    connection,
    resource,
    log,
    signal,
    onEvent: (type) => onEvent?.(resource.name, type),
    ...(status && { status: status.watch(resource.name) }),
    ...(timing && { timing }),
    ...(pageSize !== undefined && { pageSize }),
  })) {
    let turnBeganAt = performance.now()
    for (const event of events) {
      writes.add(event)
      if (performance.now() - turnBeganAt < longestTurnMs) continue
      await setImmediate()
      turnBeganAt = performance.now()
    }
    // Nothing is served before the first list is complete, so it is written in portions. A later list is one update: the states
    // in the middle of it never existed.
    if (state === 'listing' && (hasListed || writes.size < objectsPerUpdate)) continue
    const isFirstList = state === 'listed' && !hasListed
    if (writes.size === 0 && !isFirstList) continue
    if (isFirstList) hasListed = true
    store.update((transaction) => {
      writes.writeTo(transaction)
      if (isFirstList && storeKind) transaction.setSynced(storeKind)
    }, writes.receivedAtMs)
  }
}

function checkedProxyName(name = ''): string {
  if (name === '' || /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name)) return name
  throw new KpngError(
    'usage',
    `The service proxy name ${JSON.stringify(name)} cannot be the value of a label. Use up to 63 letters, digits, "-", "_" and ".".`,
  )
}
