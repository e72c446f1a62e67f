import { create, toBinary } from '@bufbuild/protobuf'
import { type globalv1, localv1 } from '@kpng/api'
import type { EndpointRecord, ServiceEntry, Store } from '../../store/index.js'
import { hashKey } from '../../store/records.js'

// What a node should know, worked out from nothing but the contents of a store, in the plainest way: rule by rule, with no thought of cost
// and no part of the real view. It is what the real view is compared with.

/** The contents of a store at one revision. */
export interface Contents {
  readonly entries: readonly ServiceEntry[]
  readonly nodes: ReadonlyMap<string, globalv1.Node>
  readonly serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR>
}

export const contentsOf = (store: Store): Contents => ({
  entries: store.entries(),
  nodes: new Map(store.nodes),
  serviceCidrs: new Map(store.serviceCidrs),
})

const families = ['v4', 'v6'] as const
const { SERVICES, ENDPOINTS, NODES, SERVICE_CIDRS } = localv1.Set
type Family = (typeof families)[number]

/** Everything a node should know: `set path` → the encoded message in hex. */
export function naiveNodeView(contents: Contents, nodeName: string): Map<string, string> {
  const node = contents.nodes.get(nodeName)
  const zone = node?.topology?.zone || node?.labels['topology.kubernetes.io/zone'] || ''
  const known = new Map<string, string>()
  for (const { path, service, sources } of contents.entries) {
    if (!service) continue
    // Copies: an endpoint that is listed twice is two endpoints, even if the store holds one object.
    const entry = { path, service, endpoints: [...sources.values()].flat().map((endpoint) => ({ ...endpoint })) }
    const ports = service.ports.map((port, index) => ({ ...port, servedFamilies: availability(entry, index) }))
    known.set(`${SERVICES} ${entry.path}`, hex(localv1.ServiceSchema, { ...service, ports }))
    for (const [path, message] of naiveEndpoints(entry, nodeName, zone)) {
      known.set(`${ENDPOINTS} ${path}`, hex(localv1.EndpointSchema, message))
    }
  }
  return known
}

/** The node itself and the service CIDRs, for those who ask for them. */
export function naiveExtras(contents: Contents, nodeName: string): string[] {
  return [
    ...(contents.nodes.has(nodeName) ? [`${NODES} ${nodeName}`] : []),
    ...[...contents.serviceCidrs.keys()].map((name) => `${SERVICE_CIDRS} ${name}`),
  ]
}

const hex = (schema: Parameters<typeof toBinary>[0], message: unknown): string =>
  Buffer.from(toBinary(schema, message as never)).toString('hex')

interface Entry {
  readonly path: string
  readonly service: localv1.Service
  readonly endpoints: readonly EndpointRecord[]
}

/** The number under which an endpoint serves a port: its own where it lists ports, else the service's. */
function numberOf(port: localv1.PortMapping | undefined, { ports }: EndpointRecord): number {
  if (!port) return 1
  if (ports) {
    const own = ports.find(
      ({ name, protocol }) => name === port.name && (protocol === undefined || protocol === port.protocol),
    )
    return own?.port ?? 0
  }
  return port.targetPort
}

const addresses = ({ v4, v6 }: EndpointRecord): string => JSON.stringify([v4, v6])

/** Whether an endpoint counts for a port: it serves it, and no other one of its address and number is preferred. */
function counts(entry: Entry, endpoint: EndpointRecord, port: localv1.PortMapping | undefined): boolean {
  const number = numberOf(port, endpoint)
  if (number === 0) return false
  const rivals = entry.endpoints.filter(
    (other) => addresses(other) === addresses(endpoint) && numberOf(port, other) === number,
  )
  // Ready, then serving, then not terminating; the first one of those that are alike.
  const order = ({ conditions: { ready, serving, terminating } }: EndpointRecord) =>
    [!ready, !serving, terminating].join()
  const [preferred] = [...rivals].sort((a, b) => order(a).localeCompare(order(b)))
  return preferred === endpoint
}

const portsOf = ({ service }: Entry): (localv1.PortMapping | undefined)[] =>
  service.ports.length > 0 ? service.ports : [undefined]

const countingIn = (entry: Entry, port: localv1.PortMapping | undefined, family: Family): EndpointRecord[] =>
  entry.endpoints.filter((endpoint) => endpoint[family].length > 0 && counts(entry, endpoint, port))

const isReady = ({ conditions }: EndpointRecord): boolean => conditions.ready
const isDraining = ({ conditions }: EndpointRecord): boolean => conditions.serving && conditions.terminating

function availability(entry: Entry, portIndex: number) {
  const any = (family: Family) =>
    countingIn(entry, portsOf(entry)[portIndex], family).some((endpoint) => isReady(endpoint) || isDraining(endpoint))
  return create(localv1.FamilyFlagsSchema, { v4: any('v4'), v6: any('v6') })
}

/** The endpoints that traffic to the whole cluster goes to, from a node. */
function clusterSet(candidates: readonly EndpointRecord[], node: string, zone: string): readonly EndpointRecord[] {
  const ready = candidates.filter(isReady)
  if (ready.length === 0) return candidates.filter(isDraining)
  const forNode = ready.filter(({ hints }) => node !== '' && hints?.nodes.includes(node))
  if (forNode.length > 0 && ready.every(({ hints }) => hints && hints.nodes.length > 0)) return forNode
  const forZone = ready.filter(({ hints }) => zone !== '' && hints?.zones.includes(zone))
  if (forZone.length > 0 && ready.every(({ hints }) => hints && hints.zones.length > 0)) return forZone
  return ready
}

/** The endpoints that a Local policy leaves a node. */
function localSet(candidates: readonly EndpointRecord[], node: string): readonly EndpointRecord[] {
  const own = candidates.filter((endpoint) => node !== '' && endpoint.node === node)
  return own.some(isReady) ? own.filter(isReady) : own.filter(isDraining)
}

interface Scopes {
  internal: boolean
  external: boolean
  cluster: boolean
}

function naiveEndpoints(entry: Entry, node: string, zone: string): [string, localv1.Endpoint][] {
  const { service } = entry
  const ports = portsOf(entry)
  const paths = naivePaths(entry)
  const ips = [service.ips?.externalIps, service.ips?.loadBalancerIps].flatMap((set) => [
    ...(set?.v4 ?? []),
    ...(set?.v6 ?? []),
  ])
  const reachable = ips.length > 0 || service.ports.some(({ nodePort }) => nodePort > 0)
  return entry.endpoints.flatMap((endpoint): [string, localv1.Endpoint][] => {
    const perPort = ports.map((port): Scopes => {
      const scopes = { internal: false, external: false, cluster: false }
      for (const family of families) {
        if (endpoint[family].length === 0) continue
        const candidates = countingIn(entry, port, family)
        const inCluster = clusterSet(candidates, node, zone).includes(endpoint)
        const inLocal = localSet(candidates, node).includes(endpoint)
        scopes.internal ||= service.internalTrafficToLocal ? inLocal : inCluster
        scopes.external ||= service.externalTrafficToLocal ? inLocal : inCluster
        scopes.cluster ||= inCluster
      }
      return scopes
    })
    const union = {
      internal: perPort.some(({ internal }) => internal),
      external: perPort.some(({ external }) => external),
      cluster: perPort.some(({ cluster }) => cluster),
    }
    const isUsed = union.internal || (reachable && (union.external || union.cluster))
    if (!isUsed && !drains(entry, endpoint, node, zone, reachable)) return []
    const scopes = isUsed ? union : { internal: false, external: false, cluster: false }
    const { ready, serving, terminating } = endpoint.conditions
    const isPlain = ready && serving && !terminating
    const message = create(localv1.EndpointSchema, {
      hostname: endpoint.hostname,
      ips: { v4: [...endpoint.v4], v6: [...endpoint.v6] },
      local: node !== '' && endpoint.node === node,
      portOverrides: (endpoint.ports ?? []).map(({ name, port, protocol }) => {
        const own = perPort[service.ports.findIndex((candidate) => candidate.name === name)]
        const differs = isUsed && own && JSON.stringify(own) !== JSON.stringify(union)
        return { name, port, ...(protocol === undefined ? {} : { protocol }), ...(differs ? { scopes: own } : {}) }
      }),
      scopes,
      ...(isPlain ? {} : { conditions: { ready, serving, terminating } }),
    })
    return [[paths.get(endpoint) as string, message]]
  })
}

/**
 * Whether a node is told of an endpoint that it does not use: its UDP flows stay while it terminates and still serves. Nodes that
 * would not have used it while it was ready are not told.
 */
function drains(
  { service, endpoints }: Entry,
  endpoint: EndpointRecord,
  node: string,
  zone: string,
  reachable: boolean,
) {
  const entry = { path: '', service, endpoints }
  if (!service.ports.some(({ protocol }) => protocol === localv1.Protocol.UDP) || !isDraining(endpoint)) return false
  if (!service.ports.some((port) => counts(entry, endpoint, port))) return false
  const isLocal = node !== '' && endpoint.node === node
  if (service.internalTrafficToLocal && !reachable && !isLocal) return false
  const sets = families.flatMap((family) =>
    service.ports.map((port) => countingIn(entry, port, family).filter(isReady)),
  )
  const follows = (names: 'nodes' | 'zones', own: string) =>
    sets.some(
      (ready) =>
        own !== '' &&
        ready.some(({ hints }) => hints?.[names].includes(own)) &&
        ready.every(({ hints }) => hints && hints[names].length > 0),
    )
  if (follows('nodes', node)) return isLocal
  // A port for which the node follows its own hints does not follow those of its zone.
  return !follows('zones', zone) || endpoint.zone === zone
}

/** Named after the pod (and the family, if it is IPv6), or by a hash; a longer name where that is taken. */
function naivePaths(entry: Entry): Map<EndpointRecord, string> {
  const paths = new Map<EndpointRecord, string>()
  const taken = new Set<string>()
  for (const endpoint of entry.endpoints) {
    if (!portsOf(entry).some((port) => counts(entry, endpoint, port))) continue
    const { podName, hostname, v4, v6, ports } = endpoint
    const identity = [hostname, v4.join(), v6.join(), ...(ports ?? []).map(({ name, port }) => `${name}:${port}`)]
    const hash = hashKey(identity.join('|'))
    const name = podName === '' ? hash : v4.length > 0 ? podName : `${podName}:v6`
    let path = `${entry.path}/${name}`
    if (taken.has(path)) path = `${path}:${hash}`
    for (let count = 3; taken.has(path); count++) path = `${entry.path}/${name}:${hash}:${count}`
    taken.add(path)
    paths.set(endpoint, path)
  }
  return paths
}
