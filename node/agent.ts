import type { Family, Log, ServiceAnswer } from '@kpng/api'
import type { Backend } from '@kpng/client'
import { type FrontendBackend, FrontendTable } from '@kpng/dataplane'
import { watchOpenFiles } from '@kpng/linux'
import { Activity, agentApi, openSocket, type ServiceFactsOf } from './agent-api/index.js'
import { configz, flagz, type ResolvedSettings } from './config/index.js'
import { HealthCheckNodePorts, healthHandler, ProxyHealth, sourceLines, sourceReport } from './health/index.js'
import { countObservations, type MetricsMode, ProxyMetrics, type Readings } from './metrics/index.js'
import { NodeObserver } from './observer.js'
import { type HttpHandler, listen, refuseUnknownHosts, statusHandler, type Verbosity } from './server/index.js'
import { ServiceLog } from './service-log.js'
import { EventRecorder } from './system/index.js'

export interface NodeAgentOptions {
  readonly resolved: ResolvedSettings
  readonly nodeName: string
  /** Of kpng. */
  readonly version: string
  /** The answer to /proxyMode: `nftables`, `iptables`, `ipvs`, or the backend's own name. */
  readonly mode: string
  readonly log: Log
  /** Ends it: closes every port. */
  readonly signal: AbortSignal
  /** How the log's verbosity is changed at run time. Default: it is not. */
  readonly verbosity?: Verbosity
  /** Numbers that others keep. Default none. */
  readonly readings?: Readings
  /** Its observations become metrics, and its frontends are used if it shows them. */
  readonly backend?: Backend
  /** Sends an object to the API server, for Events. Default: there are none. */
  readonly post?: (path: string, body: object) => Promise<unknown>
  /** The unix socket, or named pipe, of the agent API: see `agentSocketPath`. Default: none. */
  readonly agentSocket?: string
  /** What the core says about a Service, for `kpng explain`. Default: it cannot be asked. */
  readonly serviceAnswer?: (service: string) => Promise<ServiceAnswer | undefined>
  /** As `serviceAnswer`, and over the network: asked only when a user wants to know, since all nodes at once would be too many. */
  readonly askCore?: (service: string) => Promise<ServiceAnswer>
  /** What the core knows about the endpoints of a Service, if it is in this process. Default: only what the node uses is known. */
  readonly factsOf?: ServiceFactsOf
  /** The families that are served. Default both. */
  readonly families?: readonly Family[]
}

export interface NodeAgent {
  /** To be told of changes and syncs. */
  readonly observer: NodeObserver
  readonly metrics: ProxyMetrics
  readonly health: ProxyHealth
  /** The ports that are open. */
  readonly ports: { readonly healthz: number | undefined; readonly metrics: number | undefined }
  /** Answers requests to the agent API. */
  readonly apiHandler: HttpHandler
  /** Resolves when every port is closed. */
  close(): Promise<void>
}

const metricsMode = (mode: string): MetricsMode =>
  mode === 'nftables' ? 'nftables' : mode === 'iptables' || mode === 'ipvs' ? 'iptables' : 'other'

/**
 * Starts what a node agent has beside its rules: health and metrics servers, health-check node ports, Events. Rejects only when a port
 * cannot be opened and `bindAddressHardFail` is set.
 */
export async function startNodeAgent(options: NodeAgentOptions): Promise<NodeAgent> {
  const { resolved, nodeName, version, mode, log, signal, readings, backend, families } = options
  const { settings } = resolved
  const forFamilies = families ? { families } : {}
  const events = options.post && new EventRecorder({ nodeName, post: options.post, log, signal })
  const source = () => readings?.source && sourceReport(readings.source)
  const health = new ProxyHealth({ timeoutMs: 2 * settings.syncPeriodMs, source, ...forFamilies })
  const shared = (backend as Partial<FrontendBackend> | undefined)?.frontends
  const frontends = shared ?? new FrontendTable({ nodePortAddresses: settings.nodePortAddresses })
  const metrics = new ProxyMetrics({
    mode: metricsMode(mode),
    version,
    frontends,
    ...forFamilies,
    ...(readings ? { readings } : {}),
  })
  if (backend?.observations) countObservations(backend.observations, metrics)
  const healthCheckNodePorts = new HealthCheckNodePorts({
    health: {
      // After a boot without an API server the pods of this node are not running: no traffic should be drawn here for their sake.
      get healthy() {
        return health.healthy && readings?.source?.stateCache?.savedAtMs === undefined
      },
    },
    nodeName,
    log,
    frontends,
    onEvent: (event) => void events?.serviceFailed(event),
  })
  const keepsTable = shared === undefined
  const activity = new Activity(Date.now(), options.factsOf)
  const { serviceAnswer, askCore = serviceAnswer } = options
  const services = new ServiceLog({ log, serviceAnswer })
  const observed = { health, metrics, activity, services, healthCheckNodePorts, frontends, keepsTable, log }
  const observer = new NodeObserver(observed)
  const common = { log, signal, hardFail: settings.bindAddressHardFail }
  const startedMs = Date.now()
  // The verbosity may have been changed since.
  const inForce = (): ResolvedSettings =>
    options.verbosity ? { ...resolved, settings: { ...settings, verbosity: options.verbosity.get() } } : resolved
  const healthServer = await listen({
    ...common,
    name: 'health',
    address: settings.healthzBindAddress,
    handler: healthHandler({ health, onAnswer: (page, code) => metrics.recordHealth(page, code) }),
    onFailed: (error) => void events?.serverFailed('FailedToStartProxierHealthcheck', error.message),
  })
  const statusServer = await listen({
    ...common,
    name: 'metrics',
    address: settings.metricsBindAddress,
    refuse: refuseUnknownHosts(nodeName),
    handler: statusHandler({
      mode,
      registry: metrics.registry,
      configz: () => configz(inForce()),
      flagz: () => flagz(inForce()),
      status: {
        version,
        startedMs,
        lines: () => ({ 'Node name': nodeName, Mode: mode, Healthy: health.healthy, ...sourceLines(source()) }),
      },
      profiling: settings.enableProfiling,
      log,
      ...(options.verbosity ? { verbosity: options.verbosity } : {}),
    }),
    onFailed: (error) => void events?.serverFailed('FailedToStartMetricServer', error.message),
  }).catch(async (error) => {
    await healthServer.close()
    throw error
  })
  const api = agentApi({
    ...{ nodeName, version, mode, activity, frontends, source, log },
    nodeCauses: async (traffic) => {
      // Read when somebody asks: the checks are not needed to serve.
      const { nodeCauses, readTraffic } = await import('./doctor/index.js')
      return nodeCauses(traffic, await readTraffic())
    },
    ...(backend ? { backend } : {}),
    ...(options.factsOf ? { factsOf: options.factsOf } : {}),
    ...(askCore ? { serviceAnswer: askCore } : {}),
    ...(readings?.skippedObjects ? { skippedObjects: readings.skippedObjects } : {}),
  })
  if (backend?.observations) {
    const repaired = (services: readonly string[]) => api.live.onRepaired(services)
    backend.observations.listener = { ...backend.observations.listener, repaired }
  }
  const socket = await openSocket(options.agentSocket, api.handler, log)
  void events?.starting()
  watchOpenFiles({ log, signal })
  const close = async () => {
    api.close()
    await Promise.all([healthServer.close(), statusServer.close(), healthCheckNodePorts.close(), socket?.close()])
  }
  signal.addEventListener('abort', () => void close(), { once: true })
  const ports = {
    get healthz() {
      return healthServer.port
    },
    get metrics() {
      return statusServer.port
    },
  }
  return { observer, metrics, health, ports, apiHandler: api.handler, close }
}
