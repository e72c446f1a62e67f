import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import {
  type Explanation,
  families,
  isLoopback,
  type Known,
  KpngError,
  type KubernetesFacts,
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
import { KubeRequests } from './agent/kube-requests.js'
import { type Context, type Flags, given, listFlag, textFlag } from './context.js'
import { runPipeline } from './pipeline.js'
import { fileSource } from './sources/file.js'
import { kubeSource } from './sources/kube.js'
import type { SourceCommand } from './sources/source.js'

/**
 * Answers the question of `kpng explain`. The flags and the environment say whom to ask.
 * @param socket of a kpng that may run here
 */
export async function explainWith(what: string, socket: string, flags: Flags, context: Context): Promise<Explanation> {
  return (await fromSocket(what, socket, flags)) ?? (await fromSource(what, flags, context))
}

/** Flags that name somebody else than a kpng that runs here. */
const elsewhere = ['kubeconfig', 'context', 'input'] as const

/** A running kpng knows best, unless another view is asked for. Undefined if none is to be asked, or none runs. */
async function fromSocket(what: string, socket: string, flags: Flags): Promise<Explanation | undefined> {
  const other = [...elsewhere, 'node'].find((flag) => textFlag(flags, flag) !== undefined)
  const isAskedFor = flags.held === 'kpng' || textFlag(flags, 'agentSocket') !== undefined
  if (flags.held === 'kpng' && other !== undefined) {
    throw new KpngError('usage', `Only the kpng that runs here knows what it holds. Leave out --held or --${other}.`)
  }
  if (flags.held === 'kube-proxy' || elsewhere.some((flag) => textFlag(flags, flag) !== undefined)) return undefined
  // Somebody who says which cluster means that cluster, also on a machine where a kpng runs.
  if (!isAskedFor && (process.env.KUBECONFIG ?? '') !== '') return undefined
  const { askAgent, coreSocketPath } = await import('@kpng/node/agent-api')
  const isOfCore = socket === coreSocketPath()
  if (!isAskedFor && (!existsSync(socket) || (other === 'node' && !isOfCore))) return undefined
  const query = new URLSearchParams({ what })
  for (const name of ['namespace', 'from', 'node']) {
    const value = textFlag(flags, name)
    if (value !== undefined) query.set(name, value)
  }
  try {
    const found = await askAgent<Explanation>(socket, `/v1/explain?${query}`)
    const asked = `${isOfCore ? 'the core here' : `the agent of ${found.node}`}, by its socket ${socket}`
    return await withObjects({ ...found, asked }, flags)
  } catch (error) {
    // A kpng that was killed leaves its socket behind.
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
    if ((code === 'ENOENT' || code === 'ECONNREFUSED') && !isAskedFor) return undefined
    throw error
  }
}

/** What the objects in Kubernetes say, as far as the caller may read them: usually more than the agent may. */
async function withObjects(explanation: Explanation, flags: Flags): Promise<Explanation> {
  const path = explanation.diagnosis.service
  if (path === '') return explanation
  const { inspectService, loadConnection } = await import('@kpng/core/sources/kube')
  const connection = await loadConnection({}).catch(() => undefined)
  if (!connection) return explanation
  try {
    const [namespace = '', name = ''] = path.split('/')
    const inspected = inspectService(connection, namespace, name, textFlag(flags, 'serviceProxyName'))
    const facts = await Promise.race([inspected, notInTime()])
    if ('unknown' in facts || !isSameCluster(explanation, facts.value)) return explanation
    const { withKubernetes } = await import('@kpng/diagnose')
    return { ...withKubernetes(explanation, facts.value), asked: `${explanation.asked}, and ${facts.value.from}` }
  } finally {
    await connection.close()
  }
}

/** A kubeconfig may be of another cluster, in which a Service of the same name has other addresses. */
function isSameCluster({ frontends }: Explanation, { service }: KubernetesFacts): boolean {
  const served = frontends.filter(({ kind }) => kind === 'cluster IP').map(({ id }) => id)
  return served.length === 0 || (service?.clusterIps ?? []).some((ip) => served.some((id) => id.includes(ip)))
}

/** Explains from a source what a node does with connections, without a data plane: also on clusters that run another proxy. */
async function fromSource(text: string, flags: Flags, outer: Context): Promise<Explanation> {
  const path = textFlag(flags, 'input')
  const kube = path === undefined ? new KubeRequests() : undefined
  const { source, asked } = await sourceOf(path)
  const context = { ...outer, kube }
  return await withState(source, flags, context, async (store) => ({
    ...(await answer(text, store, flags, context)),
    asked: asked ?? `the API server ${(await kube?.connection)?.server}`,
  }))
}

/** Reads a source until its state is complete, and answers from it. */
export async function withState<Answer>(
  source: Pick<SourceCommand, 'start'>,
  flags: Flags,
  context: Context,
  answerFrom: (store: Store, skipped: ReadonlyMap<string, readonly string[]>) => Promise<Answer>,
): Promise<Answer> {
  const quiet: Context = { ...context, log: withoutInfo(context.log) }
  let found: { readonly answer: Answer } | undefined
  await runPipeline(
    source,
    flags,
    async (store, { signal, state }) => {
      await synced(store, signal)
      if (store.synced) found = { answer: await answerFrom(store, state?.skips.reasons ?? new Map()) }
    },
    quiet,
  )
  if (found) return found.answer
  throw new KpngError('unavailable', 'The question was not answered: the state could not be read.')
}

/** Without a path: the API server. A record is a file too. */
export async function sourceOf(
  path: string | undefined,
): Promise<{ source: Pick<SourceCommand, 'start'>; asked?: string }> {
  if (path === undefined) return { source: kubeSource }
  const { isRecord } = await import('@kpng/core/sources/replay')
  if (await isRecord(path)) return { source: recordSource, asked: `the end of the record ${path}` }
  return { source: fileSource, asked: `the file ${path}` }
}

/** Plays a record to its end at once. */
export const recordSource: Pick<SourceCommand, 'start'> = {
  start: async (flags, state, { log, signal }) => {
    const { play } = await import('@kpng/core/sources/replay')
    await play({ ...state, path: textFlag(flags, 'input') ?? '', log, signal, speed: Number.POSITIVE_INFINITY })
    return { ended: once(signal, 'abort').then(() => undefined) }
  },
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
  const { explain, parseClient, parseQuestion } = await import('@kpng/diagnose')
  const { clientOf, FrontendTable, iptablesModeFeatures } = await import('@kpng/dataplane')
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

/** What the store and, if it is the source, the API server or the file say about a Service as this node sees it. */
export async function serviceAnswer(
  service: string,
  store: Store,
  flags: Flags,
  { kube, nodeName }: Pick<Context, 'kube' | 'nodeName'>,
): Promise<ServiceAnswer> {
  const { explainService } = await import('@kpng/core/view')
  const known = explainService(store, service, nodeName)
  const path = textFlag(flags, 'input')
  if (kube) return { ...known, kubernetes: await Promise.race([inspect(service, flags, kube), notInTime()]) }
  return path === undefined ? known : { ...known, kubernetes: await objectsIn(path, service, flags) }
}

async function inspect(service: string, flags: Flags, kube: KubeRequests): Promise<Known<KubernetesFacts>> {
  const { inspectService } = await import('@kpng/core/sources/kube')
  const [namespace = '', name = ''] = service.split('/')
  return await inspectService(await kube.connection, namespace, name, textFlag(flags, 'serviceProxyName'))
}

/** A file of manifests may have pods too. A state file has all Services, and nothing else. */
async function objectsIn(path: string, service: string, flags: Flags): Promise<Known<KubernetesFacts>> {
  const { kubernetesFacts, readObjects } = await import('@kpng/core/sources/kube')
  const { isRecord } = await import('@kpng/core/sources/replay')
  if (await isRecord(path)) return { unknown: 'a record has only what a proxy uses' }
  const objects = await readObjects(path)
  const missing = { unknown: `the state file ${path} has none` }
  const none = { service: undefined, pods: missing, otherPods: missing, networkPolicies: missing }
  const proxyName = textFlag(flags, 'serviceProxyName') ?? ''
  return { value: kubernetesFacts(`the file ${path}`, proxyName, objects?.objectsOf(service) ?? none) }
}

/** While the API server is away, what the store knows is the answer. */
const inspectionLimitMs = 3000

const notInTime = () =>
  setTimeout(
    inspectionLimitMs,
    { unknown: `the API server did not answer within ${inspectionLimitMs / 1000} s` },
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
