import { KpngError, type Log } from '@kpng/api'
import { sourceHealthService } from '@kpng/client'
import type { Store } from '../../store/index.js'
import { View } from '../../view/index.js'
import { type ApiCounters, noApiCounts } from './counters.js'
import { type AnswerService, explainHandler } from './explain-calls.js'
import {
  type Handler,
  type HealthSource,
  healthHandlers,
  type Keepalive,
  type Limits,
  listen,
  type Server,
  type TlsFiles,
} from './grpc/index.js'
import { globalWatchHandler, localWatchHandler } from './watch-calls.js'
import { type OnSent, watchSettings } from './watching.js'

export { type ApiCounters, type NodeWatcher, noApiCounts, type WatcherKind } from './counters.js'
export type { AnswerService } from './explain-calls.js'
export type { Keepalive, Limits, Server, ServerStats, TlsFiles } from './grpc/index.js'
export { loadTls, tlsFilesOf } from './grpc/tls.js'

export interface ApiSinkOptions {
  readonly store: Store
  readonly log: Log
  /** `host:port`, `:port` or `unix:///path`. Default `127.0.0.1:12090`. */
  readonly listen?: string
  /** Mutual TLS. Default: none. */
  readonly tls?: Partial<TlsFiles>
  /** Serve each node's view (localv1). Default true. */
  readonly localApi?: boolean
  /** Serve the whole cluster (globalv1), for relays. Default true. */
  readonly globalApi?: boolean
  readonly limits?: Partial<Limits>
  readonly keepalive?: Partial<Keepalive>
  /** Told how many items each change set had that went out. */
  readonly onSent?: OnSent
  readonly counters?: ApiCounters
  /** What is worked out from the store, if others in this process need it too. Default: one of its own. */
  readonly view?: View
  /** How up to date the store is, for nodes that ask. Default: nobody knows. */
  readonly source?: { readonly isStale: boolean }
  /** What nodes are told that ask which endpoints of a Service they use. Default: what the store says. */
  readonly answerService?: AnswerService
}

export const defaultListen = 'tcp://127.0.0.1:12090'

/** Serves the store over gRPC: the wire contract of the kpng API, and `grpc.health.v1`. */
export async function serveApi(options: ApiSinkOptions): Promise<Server> {
  const { store, log, localApi = true, globalApi = true, counters = noApiCounts(), onSent = () => {} } = options
  if (!localApi && !globalApi) {
    throw new KpngError('usage', 'Neither the local nor the global API is to be served. Leave one of them on.')
  }
  const services = [...(localApi ? ['localv1.Sets'] : []), ...(globalApi ? ['globalv1.Sets'] : [])]
  const handlers = new Map<string, Handler>(healthHandlers(healthOf(store, services, options.source)))
  const view = options.view ?? new View(store)
  const settings = watchSettings(view, { log, counters, onSent })
  if (localApi) {
    handlers.set('/localv1.Sets/Watch', localWatchHandler(settings))
    handlers.set('/kpng.v1.Explain/Service', explainHandler({ store, answer: options.answerService }))
  }
  if (globalApi) handlers.set('/globalv1.Sets/Watch', globalWatchHandler(settings))
  const { tls, limits, keepalive } = options
  const server = await listen({
    address: options.listen ?? defaultListen,
    handlers,
    log,
    onAccepted: () => view.turns.defer(),
    ...(tls ? { tls } : {}),
    ...(limits ? { limits } : {}),
    ...(keepalive ? { keepalive } : {}),
  })
  log.info('Serving the kpng API', { listen: server.address, tls: tls !== undefined, services: services.join(', ') })
  return server
}

/** The server serves once the state is complete, even if the state becomes stale. That is said apart, to nodes that ask for it. */
function healthOf(store: Store, services: readonly string[], source: ApiSinkOptions['source']): HealthSource {
  return {
    status: (service) => {
      if (service === sourceHealthService && source) return source.isStale ? 'NOT_SERVING' : 'SERVING'
      if (service !== '' && !services.includes(service)) return undefined
      return store.synced ? 'SERVING' : 'NOT_SERVING'
    },
    onChange: (listener) => store.onChange(listener),
  }
}
