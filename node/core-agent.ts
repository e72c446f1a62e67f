import type { Log } from '@kpng/api'
import { coreHealthHandler } from './core-agent-health.js'
import { sourceLines, sourceReport } from './health/index.js'
import { type ApiRequest, apiClientMetrics, type CoreCounters, coreMetrics, type Readings } from './metrics/index.js'
import {
  type HttpHandler,
  type ListenOptions,
  listen,
  refuseUnknownHosts,
  statusHandler,
  type Verbosity,
} from './server/index.js'

export interface CoreAgentOptions {
  /** Of kpng. */
  readonly version: string
  readonly log: Log
  /** Ends it: closes every port. */
  readonly signal: AbortSignal
  /** `address:port` of /healthz, /livez and /readyz. Default: they are not served. */
  readonly healthzBindAddress?: string
  /** `address:port` of /metrics and the pages beside it. Default: they are not served. */
  readonly metricsBindAddress?: string
  /** Whether CPU and heap profiles are served beside the metrics. Default false. */
  readonly profiling?: boolean
  /** How the log's verbosity is changed at run time. Default: it is not. */
  readonly verbosity?: Verbosity
  /** What is served to others. `synced`: it is complete. */
  readonly state: { readonly synced: boolean; readonly revision: number }
  readonly readings: Readings
  readonly counters: CoreCounters
  /** Called with a function that must be told of each request to the API server. Default: requests are not counted. */
  readonly observeApiRequests?: (observer: (request: ApiRequest) => void) => void
}

export interface CoreAgent {
  /** The ports that are open. */
  readonly ports: { readonly healthz: number | undefined; readonly metrics: number | undefined }
  /** Resolves when every port is closed. */
  close(): Promise<void>
}

/**
 * Starts what a core has beside the API that it serves: pages about its health, metrics, profiles, verbosity. A port that cannot be
 * opened is said and tried again; the API is served meanwhile.
 */
export async function startCoreAgent(options: CoreAgentOptions): Promise<CoreAgent> {
  const { log, signal, state, readings, healthzBindAddress, metricsBindAddress } = options
  const source = () => readings.source && sourceReport(readings.source)
  const serve = async (
    name: string,
    address: string | undefined,
    handler: () => HttpHandler,
    refuse?: Pick<ListenOptions, 'refuse'>,
  ) => (address === undefined ? undefined : await listen({ name, address, handler: handler(), log, signal, ...refuse }))
  const [health, status] = await Promise.all([
    serve('health', healthzBindAddress, () => coreHealthHandler(state, source)),
    serve('metrics', metricsBindAddress, () => pagesOf(options), { refuse: refuseUnknownHosts() }),
  ])
  return {
    ports: {
      get healthz() {
        return health?.port
      },
      get metrics() {
        return status?.port
      },
    },
    close: async () => {
      await Promise.all([health?.close(), status?.close()])
    },
  }
}

function pagesOf(options: CoreAgentOptions): HttpHandler {
  const { version, readings, counters, state, log, verbosity, profiling = false, observeApiRequests } = options
  const registry = coreMetrics(version, readings, counters)
  observeApiRequests?.(apiClientMetrics(registry))
  const lines = () => ({
    Synced: state.synced,
    Revision: state.revision,
    ...sourceLines(readings.source && sourceReport(readings.source)),
    ...Object.fromEntries(Object.entries(counters.watchers).map(([kind, count]) => [`Watchers (${kind})`, count])),
  })
  return statusHandler({
    registry,
    status: { version, startedMs: Date.now(), lines },
    profiling,
    log,
    ...(verbosity ? { verbosity } : {}),
  })
}
