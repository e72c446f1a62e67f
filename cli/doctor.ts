import { readFile } from 'node:fs/promises'
import { type Known, type KubernetesFacts, messageOf, schemaVersion } from '@kpng/api'
import type { ConnectionOptions, KubeConnection, ListedCluster, ObjectSet } from '@kpng/core/sources/kube'
import type { Store } from '@kpng/core/store'
import type {
  CertificateFact,
  ClusterFacts,
  KubeProxyMode,
  MigrationFacts,
  NodeFacts,
  Read,
  Report,
  Section,
} from '@kpng/node/doctor'
import { type Context, type Flags, given, listFlag, textFlag } from './context.js'
import { dataplaneOptions, nodeFor, recordSource, sourceOf, withState } from './explain.js'

export interface Examination {
  readonly report: Report
  /** Of all objects that were read. */
  readonly names: ReadonlySet<string>
}

/** Looks at this machine and at the cluster. Changes nothing. Rejects only if the flags are wrong. */
export async function examine(flags: Flags, context: Context): Promise<Examination> {
  const path = textFlag(flags, 'input')
  if (path !== undefined) return await examineFiles(path, flags, context)
  const { clusterChecks, kernelChecks, migrationChecks, proxyChecks, runChecks } = await import('@kpng/node/doctor')
  const cluster = await readCluster(flags, context)
  try {
    const { nodeName, elsewhere } = placeOf(cluster.listed, flags, context)
    const node = elsewhere === undefined ? await readThisNode(flags) : undefined
    const from = textFlag(flags, 'migrateFrom') as KubeProxyMode | undefined
    const clusterFacts = await clusterFactsOf(cluster, nodeName, flags)
    const nodeTitle = `This node (${context.nodeName})`
    const sections = [
      node ? runChecks(nodeTitle, [...kernelChecks, ...proxyChecks], node) : nothingChecked(nodeTitle, elsewhere),
      cluster.missing === undefined
        ? runChecks(`The cluster, as node ${nodeName} sees it`, clusterChecks, clusterFacts)
        : nothingChecked('The cluster', cluster.missing),
    ]
    if (from) {
      const facts = await migrationFacts(from, node ?? (elsewhere as string), clusterFacts, cluster.connection, flags)
      sections.push(runChecks(`From kube-proxy's ${from} mode to kpng's nftables backend`, migrationChecks, facts))
    }
    const report = reportOf(cluster.described, sections, context)
    return { report, names: namesOf(cluster.listed) }
  } finally {
    await cluster.connection?.close()
  }
}

function namesOf(listed: ListedCluster | undefined): Set<string> {
  if (!listed) return new Set()
  const { store, services, slicesWithoutService, skipped } = listed
  const names = new Set([...store.nodes.keys(), ...services.map(({ path }) => path), ...slicesWithoutService])
  for (const object of skipped.keys()) names.add(object.slice(object.indexOf(' ') + 1))
  for (const { path, sources } of store.entries()) {
    names.add(path)
    for (const [slice, endpoints] of sources) {
      names.add(slice)
      for (const { podName, hostname, node } of endpoints) names.add(podName).add(hostname).add(node)
    }
  }
  return names
}

const nothingChecked = (title: string, reason = ''): Section => ({
  title,
  findings: [],
  skipped: [{ check: 'everything', reason }],
  checks: 0,
})

/** Which node is asked about, and why this machine is not looked at if it is another one. */
function placeOf(
  listed: ListedCluster | undefined,
  flags: Flags,
  context: Context,
): { readonly nodeName: string; readonly elsewhere?: string } {
  const wanted = textFlag(flags, 'node')
  if (!listed) {
    if (wanted === undefined || wanted === context.nodeName) return { nodeName: context.nodeName }
    return { nodeName: wanted, elsewhere: notHere(context.nodeName, wanted) }
  }
  const nodeName = nodeFor(listed.store, wanted, context.nodeName)
  if (nodeName === context.nodeName) return { nodeName }
  const elsewhere =
    wanted === undefined
      ? `the cluster has no node of this name. Run kpng doctor on a node, or say with --node-name which node this machine is`
      : notHere(context.nodeName, wanted)
  return { nodeName, elsewhere }
}

const notHere = (here: string, wanted: string): string => `this machine is ${here}. Run kpng doctor on ${wanted} too`

async function readThisNode(flags: Flags): Promise<Read<NodeFacts>> {
  const { readNode } = await import('@kpng/node/doctor')
  const { whyUnusable } = await import('@kpng/backend-nft')
  const socket = textFlag(flags, 'agentSocket')
  return await readNode({
    nftProblem: whyUnusable,
    ...given('agentSockets', socket === undefined ? undefined : [socket]),
  })
}

/** What could be read of the cluster. */
interface ReadCluster {
  readonly described: string
  readonly facts: Pick<Read<ClusterFacts>, 'server' | 'clockAheadMs' | 'rights' | 'certificates'>
  readonly connection?: KubeConnection
  readonly listed?: ListedCluster
  /** Why nobody knows an API server. */
  readonly missing?: string
}

async function readCluster(flags: Flags, { log }: Context): Promise<ReadCluster> {
  const { askServer, listCluster, loadConnection } = await import('@kpng/core/sources/kube')
  const options: ConnectionOptions = {
    ...given('kubeconfig', textFlag(flags, 'kubeconfig')),
    ...given('context', textFlag(flags, 'context')),
  }
  const certificates = await readCertificates(options, flags)
  const unreachable = (url: string, problem: string): ReadCluster => {
    const unknown = { unknown: 'the API server cannot be asked' }
    const server = { value: { url, problem } }
    return { described: 'cluster not read', facts: { server, clockAheadMs: unknown, rights: unknown, certificates } }
  }
  let connection: KubeConnection | undefined
  try {
    connection = await loadConnection(options)
    const { version, clockAheadMs } = await askServer(connection)
    log.detail(1, 'Reading the cluster', { server: connection.server, credentials: connection.described })
    const listed = await listCluster(connection, textFlag(flags, 'serviceProxyName'))
    return {
      connection,
      listed,
      described: `cluster ${connection.server} (${connection.described})`,
      facts: {
        server: { value: { url: connection.server, version } },
        clockAheadMs:
          clockAheadMs === undefined ? { unknown: 'the API server does not tell its time' } : { value: clockAheadMs },
        rights: await readRights(connection, listed),
        certificates,
      },
    }
  } catch (error) {
    await connection?.close()
    const isAskedFor = Object.keys(options).length > 0 || Boolean(process.env.KUBECONFIG)
    const answer = unreachable(connection?.server ?? '', messageOf(error))
    return connection || isAskedFor ? answer : { ...answer, missing: messageOf(error) }
  }
}

/** A list that was refused shows a missing right, whatever the review of access says. */
async function readRights(
  connection: KubeConnection,
  { unread }: ListedCluster,
): Promise<Read<ClusterFacts>['rights']> {
  const { askRights } = await import('@kpng/core/sources/kube')
  const refused = [...unread].flatMap(([resource, { group, isForbidden }]) =>
    isForbidden ? [{ verb: 'list', group, resource: String(resource), isAllowed: false }] : [],
  )
  const isRefused = (verb: string, name: string) => verb === 'list' && refused.some(({ resource }) => resource === name)
  try {
    const reviewed = await askRights(connection)
    return { value: [...refused, ...reviewed.filter(({ verb, resource }) => !isRefused(verb, resource))] }
  } catch (error) {
    return refused.length === 0 ? { unknown: messageOf(error) } : { value: refused }
  }
}

async function readCertificates(options: ConnectionOptions, flags: Flags): Promise<Known<readonly CertificateFact[]>> {
  const { configuredCertificates } = await import('@kpng/core/sources/kube')
  const { certificatesIn } = await import('@kpng/node/doctor')
  try {
    const configured = await configuredCertificates(options).catch(() => [])
    const files = [...listFlag(flags, 'tlsCrt'), ...listFlag(flags, 'tlsCa')]
    const given = await Promise.all(files.map(async (where) => ({ where, pem: await readFile(where, 'utf8') })))
    return { value: [...configured, ...given].flatMap(({ where, pem }) => certificatesIn(pem, where)) }
  } catch (error) {
    return { unknown: messageOf(error) }
  }
}

async function clusterFactsOf(cluster: ReadCluster, nodeName: string, flags: Flags): Promise<Read<ClusterFacts>> {
  const { facts, listed } = cluster
  if (!listed) {
    const unknown = { unknown: cluster.missing ?? 'the API server cannot be asked' }
    return {
      ...facts,
      services: unknown,
      pods: unknown,
      slicesWithoutService: unknown,
      skipped: unknown,
      diagnoses: unknown,
    }
  }
  const { store, services, slicesWithoutService, skipped, unread, objects } = listed
  const missing = (['services', 'endpointslices', 'nodes'] as const).flatMap((resource) => unread.get(resource) ?? [])
  const known = <T>(value: T): Known<T> =>
    missing.length > 0 ? { unknown: missing.map(({ problem }) => problem).join('; ') } : { value }
  return {
    ...facts,
    services: known(services),
    pods: objects.pods,
    slicesWithoutService: known(slicesWithoutService),
    skipped: { value: skipped },
    diagnoses: known(await diagnosesOf(store, objects, nodeName, flags)),
  }
}

/** What `kpng explain` says about each Service. */
async function diagnosesOf(store: Store, objects: ObjectSet | undefined, nodeName: string, flags: Flags) {
  const { FrontendTable } = await import('@kpng/dataplane')
  const { diagnoseIn } = await import('@kpng/diagnose')
  const { kubernetesFacts } = await import('@kpng/core/sources/kube')
  const { nodeViewOf } = await import('@kpng/core/sinks/local')
  const { serviceFacts } = await import('@kpng/core/view')
  const view = await nodeViewOf(store, nodeName)
  const table = FrontendTable.of(view, dataplaneOptions(store, flags))
  const proxyName = textFlag(flags, 'serviceProxyName') ?? ''
  return [...view.services].sort(byPath).map(([service, { endpoints }]) => {
    const facts = serviceFacts(store, service, nodeName, endpoints.length)
    const kubernetes: Known<KubernetesFacts> = objects
      ? { value: kubernetesFacts('', proxyName, objects.objectsOf(service)) }
      : { unknown: 'the file has no Kubernetes objects' }
    return diagnoseIn(table, service, {
      selection: facts ? { value: { isKnown: true, ...facts } } : { unknown: 'it is gone' },
      kubernetes,
    })
  })
}

const byPath = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1)

/** Looks at files as `explain -i` does: what is found can be corrected before anybody applies it. */
async function examineFiles(path: string, flags: Flags, context: Context): Promise<Examination> {
  const { runChecks, serviceChecks } = await import('@kpng/node/doctor')
  const { listed, readObjects } = await import('@kpng/core/sources/kube')
  const { source, asked } = await sourceOf(path)
  const objects = source === recordSource ? undefined : await readObjects(path)
  return await withState(source, flags, context, async (store, skipped) => {
    const nodeName = nodeFor(store, textFlag(flags, 'node'), context.nodeName)
    const unknown = { unknown: 'an API server is not asked' }
    const facts: Read<ClusterFacts> = {
      ...{ server: unknown, clockAheadMs: unknown, rights: unknown, certificates: unknown },
      services: { value: [...(objects?.services ?? [])].map(listed) },
      pods: objects?.pods ?? { unknown: `${asked} has none` },
      slicesWithoutService: { value: [] },
      // Kinds that no proxy reads are as they should be.
      skipped: { value: new Map([...skipped].filter(([object]) => !object.startsWith('objects of kind '))) },
      diagnoses: { value: await diagnosesOf(store, objects, nodeName, flags) },
    }
    const sections = [runChecks(`The Services, as node ${nodeName} sees them`, serviceChecks, facts)]
    const names = new Set([...store.nodes.keys(), ...store.entries().map(({ path: service }) => service)])
    return { report: reportOf(`${asked}`, sections, context), names }
  })
}

const reportOf = (what: string, sections: readonly Section[], { version }: Context): Report => ({
  schemaVersion,
  about: `kpng doctor ${version}, ${what}`,
  sections,
})

/** @param node the facts of this machine, or why it is not looked at */
async function migrationFacts(
  from: KubeProxyMode,
  node: Read<NodeFacts> | string,
  { services }: Read<ClusterFacts>,
  connection: KubeConnection | undefined,
  flags: Flags,
): Promise<Read<MigrationFacts>> {
  const ofNode = <Name extends keyof NodeFacts>(name: Name): Known<NodeFacts[Name]> =>
    typeof node === 'string' ? { unknown: node } : node[name]
  return {
    from: { value: from },
    configuration: await readConfiguration(connection, flags),
    services,
    iptables: ofNode('iptables'),
    addresses: ofNode('addresses'),
  }
}

/** From the file, which must be right, else from the cluster, which need not have it. */
async function readConfiguration(
  connection: KubeConnection | undefined,
  flags: Flags,
): Promise<Read<MigrationFacts>['configuration']> {
  const { configurationIn } = await import('@kpng/node/doctor')
  const read = (text: string) => ({ value: configurationIn(text).configuration as Record<string, unknown> })
  const file = textFlag(flags, 'config')
  if (file !== undefined) return read(await readFile(file, 'utf8'))
  const hint = 'Give it with --config'
  if (!connection) return { unknown: `kube-proxy's configuration is not known. ${hint}` }
  const { readKubeProxyConfigMap } = await import('@kpng/core/sources/kube')
  try {
    return read(await readKubeProxyConfigMap(connection))
  } catch (error) {
    return { unknown: `${messageOf(error)}. ${hint}` }
  }
}
