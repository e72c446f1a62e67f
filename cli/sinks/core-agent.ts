import { KpngError } from '@kpng/api'
import type { ApiCounters } from '@kpng/core/sinks/api'
import type { Store } from '@kpng/core/store'
import type { CoreAgent } from '@kpng/node'
import type { Command } from 'commander'
import { booleanFlag, type Context, type Flags, given, textFlag } from '../context.js'
import { sourceReadings } from '../source-readings.js'

/** Named as those of a node agent. Both may be in one pod, where that one has the usual ports: here they are off unless given. */
export const addCoreAgentFlags = (command: Command): Command =>
  command
    .option('--healthz-bind-address <address>', 'serve /healthz, /livez and /readyz there; default: not at all')
    .option('--metrics-bind-address <address>', 'serve /metrics and the debugging pages there; default: not at all')
    .option('--profiling [bool]', 'serve CPU and heap profiles beside the metrics')

/** Starts the pages that the flags ask for, beside the API that is served. */
export async function startCoreAgentFrom(
  flags: Flags,
  store: Store,
  counters: ApiCounters,
  context: Context,
): Promise<CoreAgent | undefined> {
  const healthz = textFlag(flags, 'healthzBindAddress')
  const metrics = textFlag(flags, 'metricsBindAddress')
  const profiling = booleanFlag(flags, 'profiling', false)
  if (profiling && metrics === undefined) {
    throw new KpngError('usage', '--profiling serves profiles beside the metrics. Give --metrics-bind-address too.')
  }
  const { log, signal, version, verbosity, kube } = context
  const { watchOpenFiles } = await import('@kpng/linux')
  watchOpenFiles({ log, signal })
  if (healthz === undefined && metrics === undefined) return undefined
  const { settingsFromFlags, startCoreAgent } = await import('@kpng/node')
  const { healthzBindAddress, metricsBindAddress } = settingsFromFlags({
    healthzBindAddress: healthz,
    metricsBindAddress: metrics,
  })
  return await startCoreAgent({
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
