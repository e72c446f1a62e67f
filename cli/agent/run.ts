import { KpngError } from '@kpng/api'
import type { Backend, ChangeSetSource, RunnerOptions, SyncReport } from '@kpng/client'
import type { Store } from '@kpng/core/store'
import type { NodeAgent } from '@kpng/node'
import { tracingAskedFor, tracingForbidden } from '@kpng/node/tracing-environment'
import { type Context, type Flags, given, textFlag } from '../context.js'
import { serviceAnswer } from '../explain.js'
import { sourceReadings } from '../source-readings.js'
import { agentSocketOf } from './agent-socket.js'
import { dashboardPlace, openDashboard } from './dashboard.js'
import { prepareSystem } from './settings.js'
import { stateCacheFrom } from './state-cache.js'

/** What a node agent adds to the run of a backend. */
export interface AgentRun {
  readonly runner: Partial<RunnerOptions>
  /** The change sets that the backend is to get: those of the source, after those of the state cache if it is needed. */
  changeSets(source: ChangeSetSource): ChangeSetSource
  close(): Promise<void>
}

const nothing: AgentRun = { runner: {}, changeSets: (source) => source, close: async () => {} }

/** Starts health, metrics and tracing beside a backend, as its flags and the configuration file ask. */
export async function startAgent(backend: Backend, mode: string, flags: Flags, context: Context): Promise<AgentRun> {
  const { resolved, log } = context
  // A dry run changes no sysctl and opens no port.
  if (!resolved || flags.dryRun) return nothing
  // First, since it checks its flags: nothing has been changed or opened yet.
  const place = await dashboardPlace(flags)
  const tracing = await startTraces(flags, context)
  // Nothing waits for it: it only logs what it cannot set, and the lists are arriving meanwhile.
  const prepared = prepareSystem(resolved, flags, log)
  const cache = await stateCacheFrom(flags, backend, context)
  const agent = await startServers(backend, mode, flags, context)
  const dashboard = place && (await openDashboard(place, agent.apiHandler, context))
  const { observations } = backend
  if (tracing && observations) {
    observations.listener = { ...observations.listener, connectionEnded: tracing.recordConnection }
  }
  await followConfig(flags, context)
  const { releaseMemoryWhenIdle } = await import('@kpng/node')
  // The connections of a userspace proxy would wait for it.
  const releaseMemory = mode === 'userspace' ? () => {} : releaseMemoryWhenIdle(context)
  return {
    runner: {
      minSyncIntervalMs: resolved.settings.minSyncPeriodMs,
      syncIntervalMs: resolved.settings.syncPeriodMs,
      // The live page shows them too.
      withSteps: tracing !== undefined || dashboard !== undefined,
      onQueued: (changes) => agent.observer.onQueued(changes),
      onFullSyncRequested: (reason) => agent.observer.onFullSyncRequested(reason),
      onSync: (report: SyncReport) => {
        agent.observer.onSync(report)
        cache?.onSync(report)
        tracing?.recordSync(report)
        if (report.error === undefined) releaseMemory()
      },
    },
    changeSets: (source) => cache?.changeSets(source) ?? source,
    close: async () => {
      await Promise.all([prepared, agent.close(), dashboard?.close(), tracing?.close(), cache?.close()])
    },
  }
}

async function startServers(backend: Backend, mode: string, flags: Flags, context: Context): Promise<NodeAgent> {
  const { apiClientMetrics, startNodeAgent } = await import('@kpng/node')
  const { resolved, log, signal, nodeName, version, verbosity, events, kube, state, askCore } = context
  const answerFrom = (store: Store, service: string, server: typeof kube) =>
    serviceAnswer(service, store, flags, { nodeName, kube: server })
  const agent = await startNodeAgent({
    resolved: resolved as NonNullable<typeof resolved>,
    nodeName,
    version,
    mode,
    log,
    signal,
    verbosity,
    readings: { ...sourceReadings(context), nodeLocalEvents: () => events.nodeLocalEvents },
    backend,
    ...given('agentSocket', await agentSocketOf(flags)),
    ...given('serviceAnswer', state && ((service: string) => answerFrom(state.store, service, undefined))),
    ...given('factsOf', state && (await factsFrom(state.store, nodeName))),
    ...given('askCore', askCore ?? (state && ((service: string) => answerFrom(state.store, service, kube)))),
    ...(kube ? { post: (path: string, body: object) => kube.post(path, body) } : {}),
  })
  kube?.sent.observe(apiClientMetrics(agent.metrics.registry))
  return agent
}

async function factsFrom(store: Store, nodeName: string) {
  const { serviceFactsOf } = await import('@kpng/core/view')
  return serviceFactsOf(store, nodeName)
}

async function startTraces(flags: Flags, { log, nodeName }: Context) {
  const endpoint = textFlag(flags, 'otlpEndpoint')
  const ratio = textFlag(flags, 'traceRatio')
  if (tracingForbidden(process.env) || (endpoint === undefined && !tracingAskedFor(process.env))) return undefined
  const { startTracing } = await import('@kpng/node/tracing')
  return await startTracing({
    nodeName,
    log,
    ...given('endpoint', endpoint),
    ...given('sampleRatio', ratio === undefined ? undefined : Number(ratio)),
  })
}

/** As in kube-proxy, a changed file ends the process: the kubelet or systemd starts it again with the new settings. */
async function followConfig(flags: Flags, { log, signal, stop }: Context): Promise<void> {
  const path = textFlag(flags, 'config')
  if (path === undefined) return
  const { watchConfigFile } = await import('@kpng/node')
  await watchConfigFile({
    path,
    log,
    signal,
    onChange: () =>
      stop(
        new KpngError(
          'unavailable',
          `The configuration file ${path} has changed. kpng exits, so that it is restarted with the new settings.`,
        ),
      ),
  })
}
