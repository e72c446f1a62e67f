import { setTimeout } from 'node:timers/promises'
import {
  type Explanation,
  families,
  isLoopback,
  KpngError,
  type Log,
  messageOf,
  nearestNames,
  type ServiceAnswer,
  silentLog,
} from '@kpng/api'
import type { Backend, SyncReport } from '@kpng/client'
import type { Store } from '@kpng/core/store'
import type { View } from '@kpng/core/view'
import type { DataplaneOptions } from '@kpng/dataplane'
import type { KubeRequests } from './agent/kube-requests.js'
import { type Context, type Flags, given, listFlag, textFlag } from './context.js'
import { runPipeline } from './pipeline.js'
import { fileSource } from './sources/file.js'
import { kubeSource } from './sources/kube.js'

/** Explains from a source what a node does with connections, without a data plane: also on clusters that run another proxy. */
export async function explainFromSource(text: string, flags: Flags, context: Context): Promise<Explanation> {
  const source = textFlag(flags, 'input') === undefined ? kubeSource : fileSource
  const quiet: Context = { ...context, log: withoutInfo(context.log) }
  let explanation: Explanation | undefined
  await runPipeline(
    source,
    flags,
    async (store, { signal }) => {
      await synced(store, signal)
      if (store.synced) explanation = await answer(text, store, flags, context)
    },
    quiet,
  )
  if (explanation) return explanation
  throw new KpngError('unavailable', 'The question was not answered: the state could not be read.')
}

/** Who asks one question wants to read one answer. Warnings and errors stay. */
const withoutInfo = (log: Log): Log => ({ ...log, info: (text, fields) => log.detail(1, text, fields) })

/** Until the source has read everything, or the run ends. */
const synced = (store: Store, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const check = () => {
      if (store.synced || signal.aborted) resolve()
    }
    store.onChange(check)
    signal.addEventListener('abort', check, { once: true })
    check()
  })

async function answer(text: string, store: Store, flags: Flags, context: Context): Promise<Explanation> {
  const { clientOf, explain, FrontendTable, iptablesModeFeatures, parseClient, parseQuestion } = await import(
    '@kpng/dataplane'
  )
  const { nodeViewOf } = await import('@kpng/core/sinks/local')
  const question = parseQuestion(text, textFlag(flags, 'namespace') ?? 'default')
  const nodeName = nodeFor(store, textFlag(flags, 'node'), context.nodeName, flags.held !== undefined)
  const kubeProxy = flags.held === 'kube-proxy' ? await kubeProxyHere(context.log) : undefined
  // kube-proxy's iptables mode differs from nftables, and serves node ports at every address.
  const isIptables = kubeProxy?.mode === 'iptables'
  const defaults = isIptables ? { nodePortAddresses: ['all'] } : {}
  const table = FrontendTable.of(await nodeViewOf(store, nodeName), { ...defaults, ...dataplaneOptions(store, flags) })
  const from = textFlag(flags, 'from')
  return await explain(question, {
    ...{ table, nodeName },
    ...(kubeProxy ? { held: kubeProxy.held, heldBy: `kube-proxy (${kubeProxy.mode})` } : {}),
    ...(isIptables ? { features: iptablesModeFeatures } : {}),
    client: from === undefined ? undefined : parseClient(from, (ip) => clientOf(table.node, ip)),
    serviceAnswer: (service) => serviceAnswer(service, store, flags, { ...context, nodeName }),
  })
}

/** Explains as a core does to those who ask on its socket: for the node in the query, of the state that it has. */
export async function explainAsCore(
  query: URLSearchParams,
  store: Store,
  flags: Flags,
  context: Context,
): Promise<Explanation> {
  if (!store.synced)
    throw new KpngError('unavailable', 'This core does not know the cluster yet. Ask again in a moment.')
  const what = query.get('what')
  if (!what) throw new KpngError('usage', 'Say what to explain: /v1/explain?what=web&namespace=default')
  const asked = Object.fromEntries(['namespace', 'from', 'node'].map((name) => [name, query.get(name) ?? undefined]))
  const { serviceProxyName } = flags
  return await answer(what, store, { ...asked, serviceProxyName }, context)
}

/** What a core serves a node. */
export async function viewAsCore(store: Store, nodeName: string) {
  if (!store.synced)
    throw new KpngError('unavailable', 'This core does not know the cluster yet. Ask again in a moment.')
  const { FrontendTable } = await import('@kpng/dataplane')
  const { nodeViewOf } = await import('@kpng/core/sinks/local')
  const view = await nodeViewOf(store, nodeName)
  return { view, frontends: FrontendTable.of(view, dataplaneOptions(store, {})) }
}

/** Follows what a core serves nodes, for their live pages. */
export async function followAsCore(store: Store, view: View, log: Log) {
  const { FrontendTable } = await import('@kpng/dataplane')
  const { runBackend } = await import('@kpng/client')
  const { changeSetsOf } = await import('@kpng/core/sinks/local')
  const changeSets = changeSetsOf(store, view)
  return (nodeName: string, signal: AbortSignal, onSync: (report: SyncReport) => void) => {
    if (nodeName !== '') nodeFor(store, nodeName, nodeName)
    const table = new FrontendTable(dataplaneOptions(store, {}))
    const tableOnly: Backend = {
      setup: async () => {},
      sync: async (state, changes) => void table.apply(state, changes, { families, addresses: [] }),
      cleanup: async () => {},
      close: async () => {},
    }
    runBackend(tableOnly, { changeSets, nodeName, signal, onSync, log: silentLog }).catch((error) =>
      log.warn('The live page of a node is not followed any more', { node: nodeName, error: messageOf(error) }),
    )
    return table
  }
}

/** Without --cluster-cidr, the pods of the cluster are those in the pod CIDRs of its Nodes. */
export function dataplaneOptions(store: Store, flags: Flags): DataplaneOptions {
  const nodePortAddresses = listFlag(flags, 'nodeportAddresses')
  const clusterCidrs = listFlag(flags, 'clusterCidr')
  const podCidrs = [...store.nodes.values()].flatMap((node) => node.podCidrs)
  return {
    ...given('nodePortAddresses', nodePortAddresses.length > 0 ? nodePortAddresses : undefined),
    // The playground lives on loopback, and so do the pods of its one node.
    allowLoopback: [...store.nodes.values()].every(
      ({ addresses }) => addresses.length > 0 && addresses.every(isLoopback),
    ),
    detectLocal: { mode: 'ClusterCIDR', cidrs: clusterCidrs.length > 0 ? clusterCidrs : podCidrs },
  }
}

/** What the store and, if it is the source, the API server say about a Service as this node sees it. */
export async function serviceAnswer(
  service: string,
  store: Store,
  flags: Flags,
  { kube, nodeName }: Pick<Context, 'kube' | 'nodeName'>,
): Promise<ServiceAnswer> {
  const { explainService } = await import('@kpng/core/view')
  const known = explainService(store, service, nodeName)
  if (!kube) return known
  const { exists, ...inspection } = await Promise.race([inspect(service, flags, kube), notInTime()])
  return exists ? { ...known, ...inspection } : known
}

async function inspect(service: string, flags: Flags, kube: KubeRequests) {
  const { inspectService } = await import('@kpng/core/sources/kube')
  const [namespace = '', name = ''] = service.split('/')
  return await inspectService(await kube.connection, namespace, name, textFlag(flags, 'serviceProxyName'))
}

/** While the API server is away, what the store knows is the answer. */
const inspectionLimitMs = 3000

const notInTime = () =>
  setTimeout(
    inspectionLimitMs,
    {
      exists: true,
      causes: [`The API server did not answer within ${inspectionLimitMs / 1000} s: its pods were not looked at.`],
    },
    { ref: false },
  )

/** Reads the rules on this machine, to be compared with what they should be. */
async function kubeProxyHere(log: Log) {
  const { readKubeProxy } = await import('@kpng/node/kube-proxy-held')
  const { mode, notes, held } = await readKubeProxy()
  for (const note of notes) log.warn(note)
  return { mode, held }
}

/**
 * The node that is asked for, else this one, else the first of the cluster: on a laptop, any node is better than none.
 * @param mustBeHere it is compared with rules on this machine
 */
export function nodeFor(store: Store, wanted: string | undefined, here: string, mustBeHere = false): string {
  const names = [...store.nodes.keys()].sort()
  if (names.length === 0 || (wanted !== undefined && names.includes(wanted))) return wanted ?? here
  if (wanted === undefined && (names.includes(here) || !mustBeHere))
    return names.includes(here) ? here : (names[0] as string)
  if (wanted === undefined) {
    throw new KpngError(
      'usage',
      `The cluster has no node "${here}", as this machine is called. Give its name with --node.`,
    )
  }
  const [near] = nearestNames(wanted, names)
  const hint =
    near === undefined
      ? `Its nodes are ${names.slice(0, 5).join(', ')}${names.length > 5 ? ' …' : ''}.`
      : `Did you mean ${near}?`
  throw new KpngError('usage', `The cluster has no node "${wanted}". ${hint}`)
}
