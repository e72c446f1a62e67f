import { type EndpointRow, KpngError, type LiveNode } from '@kpng/api'
import type { ApiCounters, NodeWatcher } from '@kpng/core/sinks/api'
import type { Store } from '@kpng/core/store'
import type { View } from '@kpng/core/view'
import type { CoreAgent } from '@kpng/node'
import type { Command } from 'commander'
import { addDashboardFlags, dashboardPlace, openDashboard } from '../agent/dashboard.js'
import { booleanFlag, type Context, type Flags, given, textFlag } from '../context.js'
import { booleanOption, groups } from '../help.js'
import { sourceReadings } from '../source-readings.js'

/** Named as the flags of a node agent. Both may run in one pod, where the node agent has the usual ports, so these are off by default. */
export const addCoreAgentFlags = (command: Command): Command =>
  addDashboardFlags(command)
    .optionsGroup(groups.pages)
    .option('--healthz-bind-address <ip:port>', 'where to serve /healthz, /livez and /readyz (default: nowhere)')
    .option('--metrics-bind-address <ip:port>', 'where to serve /metrics and the debugging pages (default: nowhere)')
    .addOption(booleanOption('--profiling', 'serve CPU and heap profiles beside the metrics', false))
    .option(
      '--agent-socket <path>',
      'where kpng status, get and explain ask this core; empty: nowhere (default: /run/kpng/core.sock)',
    )

/** Opens the socket on which kpng status, get and explain ask this core, and the live page if the flags ask for it. */
export async function openCoreApi(
  flags: Flags,
  store: Store,
  view: View,
  counters: ApiCounters,
  context: Context,
): Promise<{ close(): Promise<void> } | undefined> {
  const place = await dashboardPlace(flags)
  if (flags.agentSocket === '' && !place) return undefined
  const { coreSocketPath, openSocket } = await import('@kpng/node/agent-api')
  const { log } = context
  const { handler, close } = await coreApiOf(flags, store, view, counters, context)
  const path = flags.agentSocket === '' ? undefined : (textFlag(flags, 'agentSocket') ?? coreSocketPath())
  const socket = await openSocket(path, handler, log)
  const dashboard = place && (await openDashboard(place, handler, context))
  return {
    close: async () => {
      close()
      await Promise.all([socket?.close(), dashboard?.close()])
    },
  }
}

async function coreApiOf(flags: Flags, store: Store, view: View, counters: ApiCounters, context: Context) {
  const { coreApi } = await import('@kpng/node/agent-api')
  const { sourceReport } = await import('@kpng/node')
  const { ChangeLog } = await import('@kpng/core/store')
  const { serviceFactsOf } = await import('@kpng/core/view')
  const { explainAsCore, followAsCore, viewAsCore } = await import('../explain.js')
  const { version, nodeName, log, source, state } = context
  const history = new ChangeLog(store)
  const follow = await followAsCore(store, view, log)
  const api = coreApi({
    ...{ version, nodeName, state: store },
    watchers: () => counters.watchers,
    source: () => sourceReport(source),
    ...given('skippedObjects', state && (() => state.skips.total)),
    endpoints: (namespace) => endpointsIn(store, namespace, nodeName),
    knownNodes: () => store.nodes.values(),
    viewOf: (node) => viewAsCore(store, node),
    counts: () => clusterCounts(store),
    explain: (query) => explainAsCore(query, store, flags, context),
    ...{ history, follow, log },
    nodes: () => liveNodes(store, counters),
    factsOf: (node) => serviceFactsOf(store, node),
  })
  const close = () => {
    api.close()
    history.close()
  }
  return { handler: api.handler, close }
}

function clusterCounts(store: Store): { services: number; endpoints: number } {
  let [services, endpoints] = [0, 0]
  for (const { service, sources } of store.entries()) {
    if (!service) continue
    services++
    for (const { length } of sources.values()) endpoints += length
  }
  return { services, endpoints }
}

/** A node that takes a change over within this time is not called behind. */
const behindAfterMs = 1000

/** The nodes of the cluster and all others that watch, in the order of their names. */
export function liveNodes({ nodes, revision }: Pick<Store, 'nodes' | 'revision'>, counters: ApiCounters): LiveNode[] {
  const names = new Set([...nodes.keys(), ...counters.nodes.keys()])
  return [...names].sort().map((name) => {
    const watchers = [...(counters.nodes.get(name) ?? [])]
    const slowest = watchers.reduce<NodeWatcher | undefined>(
      (least, watcher) => (least && least.revision <= watcher.revision ? least : watcher),
      undefined,
    )
    const leftMs = counters.left.get(name)
    const sinceMs = slowest && slowest.revision < revision ? slowest.busySinceMs : undefined
    return {
      name,
      watchers: watchers.length,
      revision: slowest?.revision ?? 0,
      ...(leftMs === undefined ? {} : { leftAt: new Date(leftMs).toISOString() }),
      ...(sinceMs !== undefined && Date.now() - sinceMs >= behindAfterMs
        ? { behindSince: new Date(sinceMs).toISOString() }
        : {}),
    }
  })
}

/** Every endpoint that a Service has, used by some node or not. */
function endpointsIn(store: Store, namespace: string | undefined, nodeName: string): EndpointRow[] {
  return store.entries().flatMap(({ service, sources }) => {
    if (!service || (namespace !== undefined && service.namespace !== namespace)) return []
    return [...sources.values()].flat().map(({ v4, v6, hostname, node }) => ({
      ...{ namespace: service.namespace, service: service.name, hostname, isLocal: node === nodeName },
      ips: [...v4, ...v6],
    }))
  })
}

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
