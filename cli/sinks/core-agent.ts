import { KpngError } from '@kpng/api'
import type { ApiCounters } from '@kpng/core/sinks/api'
import type { Store } from '@kpng/core/store'
import type { CoreAgent } from '@kpng/node'
import type { Command } from 'commander'
import { booleanFlag, type Context, type Flags, given, textFlag } from '../context.js'
import { booleanOption, groups } from '../help.js'
import { sourceReadings } from '../source-readings.js'

/** Named as the flags of a node agent. Both may run in one pod, where the node agent has the usual ports, so these are off by default. */
export const addCoreAgentFlags = (command: Command): Command =>
  command
    .optionsGroup(groups.pages)
    .option('--healthz-bind-address <ip:port>', 'where to serve /healthz, /livez and /readyz (default: nowhere)')
    .option('--metrics-bind-address <ip:port>', 'where to serve /metrics and the debugging pages (default: nowhere)')
    .addOption(booleanOption('--profiling', 'serve CPU and heap profiles beside the metrics', false))
    .option(
      '--agent-socket <path>',
      'where kpng status, get and explain ask this core; empty: nowhere (default: /run/kpng/core.sock)',
    )

/** Opens the socket on which kpng status, get and explain ask this core. */
export async function openCoreSocket(flags: Flags, store: Store, counters: ApiCounters, context: Context) {
  if (flags.agentSocket === '') return undefined
  const { coreApiHandler, coreSocketPath, openSocket } = await import('@kpng/node/agent-api')
  const { sourceReport } = await import('@kpng/node')
  const { explainAsCore, viewAsCore } = await import('../explain.js')
  const { version, nodeName, log, source, state } = context
  const handler = coreApiHandler({
    ...{ version, nodeName, state: store },
    watchers: () => counters.watchers,
    source: () => sourceReport(source),
    ...given('skippedObjects', state && (() => state.skips.total)),
    endpointCounts: () =>
      new Map(store.entries().flatMap(({ service, path, sources }) => (service ? [[path, countIn(sources)]] : []))),
    nodes: () => store.nodes.values(),
    viewOf: (node) => viewAsCore(store, node),
    explain: (query) => explainAsCore(query, store, flags, context),
  })
  return await openSocket(textFlag(flags, 'agentSocket') ?? coreSocketPath(), handler, log)
}

const countIn = (slices: ReadonlyMap<string, readonly unknown[]>): number =>
  [...slices.values()].reduce((sum, { length }) => sum + length, 0)

type StartCoreAgent = (store: Store, counters: ApiCounters, context: Context) => Promise<CoreAgent>

/** Checks the flags. Returns what starts the pages that they ask for, or undefined if they ask for none. */
export async function coreAgentFrom(flags: Flags): Promise<StartCoreAgent | undefined> {
  const healthz = textFlag(flags, 'healthzBindAddress')
  const metrics = textFlag(flags, 'metricsBindAddress')
  const profiling = booleanFlag(flags, 'profiling', false)
  if (profiling && metrics === undefined) {
    throw new KpngError('usage', '--profiling serves profiles beside the metrics. Give --metrics-bind-address as well.')
  }
  if (healthz === undefined && metrics === undefined) return undefined
  const { settingsFromFlags, startCoreAgent } = await import('@kpng/node')
  const { healthzBindAddress, metricsBindAddress } = settingsFromFlags({
    healthzBindAddress: healthz,
    metricsBindAddress: metrics,
  })
  return (store, counters, context) => {
    const { log, signal, version, verbosity, kube } = context
    return startCoreAgent({
      version,
      log,
      signal,
      verbosity,
      profiling,
      state: store,
      readings: sourceReadings(context),
      counters,
      ...given('healthzBindAddress', healthzBindAddress),
      ...given('metricsBindAddress', metricsBindAddress),
      ...given('observeApiRequests', kube && ((observer) => kube.sent.observe(observer))),
    })
  }
}
