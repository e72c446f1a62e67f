import { type Explanation, isLoopback, parseIp, silentLog, type Verdict } from '@kpng/api'
import type { BackendFeatures, Protocol } from '@kpng/client'
import { dump } from 'js-yaml'
import { ebpfBackend } from '../../backends/ebpf/index.js'
import { iptablesBackend } from '../../backends/iptables/index.js'
import { ipvsBackend } from '../../backends/ipvs/index.js'
import { nftBackend } from '../../backends/nft/index.js'
import { iptablesCapture, nftCapture, userspaceBackend } from '../../backends/userspace/index.js'
import {
  addressOf,
  clusterCidr,
  type Host,
  hosts,
  ownExternalAddress,
  secondAddress,
} from '../../conformance/addresses.js'
import { type Cell, type Expectation, isDecidedByObjects, type KubernetesObject } from '../../conformance/cases/case.js'
import { cases } from '../../conformance/cases/index.js'
import { clusterObjects, serviceProxyName } from '../../conformance/cases/objects.js'
import type { ConformanceReport } from '../../conformance/report/report.js'
import { type PlacedCell, type Round, roundsOf } from '../../conformance/runner/rounds.js'
import { keptKeys } from '../../core/kubernetes/index.js'
import { nodeViewOf } from '../../core/sinks/local/index.js'
import { readContent } from '../../core/sources/file/read.js'
import { Store } from '../../core/store/index.js'
import { FrontendTable } from '../../dataplane/frontend-table.js'
import { type Client, clientOf } from '../../dataplane/route.js'
import type { DataplaneOptions } from '../../dataplane/settings.js'
import { explain } from '../explain.js'

// Every cell of the conformance kit as a question to `explain`: the kit measures the same cells with packets on real data planes.

interface KitBackend {
  readonly features: BackendFeatures
  /** As the kit starts it, beside the ranges of the pods. */
  readonly options: DataplaneOptions
}

const portals = { log: silentLog, table: 'kpng-userspace', bindAddresses: [] }

/** kpng's backends by the names that the kit has for them. None of them is set up. */
export const kitBackends: Readonly<Record<string, KitBackend>> = {
  nft: { features: featuresOf(nftBackend()), options: {} },
  iptables: {
    features: featuresOf(iptablesBackend({ localhostNodePorts: true })),
    options: { nodePortAddresses: ['all'] },
  },
  ipvs: { features: featuresOf(ipvsBackend()), options: { nodePortAddresses: ['all'] } },
  ebpf: { features: featuresOf(ebpfBackend()), options: {} },
  userspace: { features: userspaceBackend({ capture: nftCapture(portals) }).features(), options: {} },
  'userspace-iptables': { features: userspaceBackend({ capture: iptablesCapture(portals) }).features(), options: {} },
}

function featuresOf(backend: { features?(): BackendFeatures }): BackendFeatures {
  if (backend.features) return backend.features()
  throw new Error('The backend does not say what it can do.')
}

const servers = ['a1', 'a2', 'b1', 'b2'] as const
const ownAddresses = [addressOf['node-a'], secondAddress, ownExternalAddress].flatMap((each) => Object.values(each))

/** What `explain` says of a cell, in the kit's words. */
export interface Prediction {
  readonly as: Expectation
  readonly hasSessionAffinity: boolean
  readonly explanation: Explanation
}

/** Predicts the cells of a round. */
export async function predictor(
  { objects }: Pick<Round, 'objects'>,
  backend: KitBackend,
): Promise<(cell: Cell) => Promise<Prediction>> {
  // The proxies of one node stand side by side. What one of them serves, the others leave alone.
  const tables = [await tableOf(objects, '', backend), await tableOf(objects, serviceProxyName, backend)]
  return async (cell) => {
    const explanations = await Promise.all(tables.map((table) => explained(table, cell, backend)))
    const explanation =
      explanations.find(({ frontends }) => frontends.length > 0) ??
      explanations.find(({ outcome = 'passed' }) => outcome !== 'passed') ??
      (explanations[0] as Explanation)
    const hasSessionAffinity = explanation.frontends.some(({ notes }) =>
      notes.some((note) => note.startsWith('Session')),
    )
    return { as: inKitWords(explanation, cell), hasSessionAffinity, explanation }
  }
}

/**
 * Whether a cell is about a new connection. A flow that exists stays where it is, and nobody asks `explain` about it. What a case does beside
 * feeding objects, such as rules of others or a proxy with other flags, `explain` does not know here either.
 */
export const isNewConnection = ({ case: one, cell, step }: PlacedCell): boolean =>
  isDecidedByObjects(one) && !cell.throughout && (cell.flow === undefined || step === 0)

/** What node-a serves when these objects are all there is. */
async function tableOf(objects: readonly KubernetesObject[], proxyName: string, { options }: KitBackend) {
  const text = [...clusterObjects, ...objects].map((object) => dump(object, { skipInvalid: true })).join('---\n')
  const kept = keptKeys([], [])
  const store = new Store()
  const reading = { serviceProxyName: proxyName, intern: String, keptOfServices: kept, keptOfNodes: kept }
  store.update((transaction) => {
    transaction.replaceAll(readContent('objects.yaml', text, reading))
    transaction.setSynced('services', 'endpoints', 'nodes')
  })
  const detectLocal = { mode: 'ClusterCIDR', cidrs: Object.values(clusterCidr) } as const
  return FrontendTable.of(await nodeViewOf(store, 'node-a'), { ...options, detectLocal })
}

function explained(table: FrontendTable, { client, to }: Cell, { features }: KitBackend): Promise<Explanation> {
  const protocol = to.protocol.toLowerCase() as Protocol
  return explain(
    { kind: 'address', ip: to.ip, port: to.port, protocol },
    {
      ...{ table, features, ownAddresses, nodeName: 'node-a' },
      client: clientIn(table, client, to.family),
      serviceAnswer: async () => undefined,
    },
  )
}

function clientIn(table: FrontendTable, host: Host, family: 'IPv4' | 'IPv6'): Client {
  const ip = addressOf[host][family]
  return host === 'node-a' ? { kind: 'node', ip } : clientOf(table.node, ip)
}

function inKitWords({ frontends, outcome = 'passed' }: Explanation, { to }: Cell): Expectation {
  const route = frontends[0]?.routes[0]
  const is = route?.outcome ?? outcome
  if (route && is === 'endpoint') {
    const source = ({ client: 'kept', node: 'node', either: 'any' } as const)[route.endpointSees ?? 'either']
    return { outcome: 'reached', servers: route.endpoints.map((endpoint) => serverAt(endpoint, to.port)), source }
  }
  if (is === 'reset') return { outcome: 'broken' }
  // What the proxy leaves alone reaches a pod where it is that pod's own address.
  const pod = servers.find((server) => Object.values(addressOf[server]).includes(to.ip))
  if (is === 'passed' && pod) return { outcome: 'reached', servers: [`${pod}:${to.port}`], source: 'kept' }
  // What the proxy leaves alone reaches the node itself here, and nothing listens there.
  const isOwn = ownAddresses.includes(to.ip) || isLoopback(to.ip)
  return { outcome: is === 'passed' && isOwn ? 'refused' : (is as 'refused' | 'dropped' | 'passed') }
}

/** `a1:8080`. An endpoint without a port, as Services with whole addresses have them, is reached at the port that was asked for. */
function serverAt(endpoint: string, askedPort: number): string {
  const [, ip = endpoint, port = askedPort] = parseIp(endpoint) ? [] : (/^\[?(.*?)\]?:(\d+)$/.exec(endpoint) ?? [])
  return `${hosts.find((host) => Object.values(addressOf[host]).includes(ip)) ?? ip}:${port}`
}

/** Whether a prediction is what the truth table expects. */
export function agrees(expected: Expectation, client: Host, { as, hasSessionAffinity }: Prediction): boolean {
  if (expected.outcome === 'unserved') return as.outcome !== 'reached'
  if (expected.outcome !== 'reached' || as.outcome !== 'reached') return expected.outcome === as.outcome
  const isExpected = (server: string) =>
    expected.servers.some((each) => each === server || each === server.split(':')[0])
  // A client that session affinity remembers gets one of them.
  const servers = hasSessionAffinity ? as.servers.filter(isExpected) : as.servers
  const hasServers = servers.every(isExpected) && servers.length === expected.servers.length
  // The node's own address is the node's, whether it is kept or masqueraded.
  const hasSource = expected.source === 'any' || client === 'node-a' || expected.source === as.source
  return hasServers && hasSource
}

const verdictsFor: Readonly<Record<string, readonly Verdict[]>> = {
  endpoint: ['serving', 'draining'],
  refused: ['refused'],
  dropped: ['dropped'],
  reset: ['dropped'],
  passed: ['notServedHere', 'absent'],
}

/** Whether the verdict says what becomes of the connection. */
export function hasRightVerdict({ explanation: { diagnosis, frontends, outcome = 'passed' } }: Prediction): boolean {
  const is = frontends[0]?.routes[0]?.outcome ?? outcome
  return verdictsFor[is]?.includes(diagnosis.verdict) ?? false
}

/** Whether what the kit has measured, as its report says it, is what was predicted. */
export function wasMeasured(got: string, client: Host, { as }: Prediction): boolean {
  return got.split('; ').every((each) => {
    const text = each.replace(/^\d+× /, '')
    if (as.outcome !== 'reached') return text.split(' ')[0] === as.outcome
    const [, server = '', source = ''] = /^(\S+), (.*)$/.exec(text) ?? []
    if (!as.servers.includes(server)) return false
    if (as.source === 'any') return source === 'source kept' || source === 'from the node'
    return source === (as.source === 'node' || client === 'node-a' ? 'from the node' : 'source kept')
  })
}

/** The cells in which packets went another way than `kpng explain` says. */
export async function mispredicted({ backend = '', results }: ConformanceReport): Promise<string[]> {
  const measured = new Map(results.flatMap(({ id, status, got }) => (status === 'skipped' ? [] : [[id, got]])))
  const wrong: string[] = []
  for (const round of roundsOf(cases)) {
    const placed = round.cells.filter((each) => isNewConnection(each) && measured.has(each.id))
    if (placed.length === 0) continue
    const predict = await predictor(round, kitBackends[backend] as KitBackend)
    for (const { id, cell } of placed) {
      const got = measured.get(id) ?? ''
      const prediction = await predict(cell)
      if (wasMeasured(got, cell.client, prediction) && hasRightVerdict(prediction)) continue
      wrong.push(
        `${id}: measured ${got}, predicted ${JSON.stringify(prediction.as)}, ${prediction.explanation.diagnosis.verdict}`,
      )
    }
  }
  return wrong
}
