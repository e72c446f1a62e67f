import { addressBytesIn, allowedSets, type FieldKind, type SetShape, type TableFamily } from '@kpng/linux/nftables'

// Every name that kpng puts into the kernel, and its meaning. There is one table per address family, `ip kpng` and `ip6 kpng`, with
// the same rules.
//
// Short forms used below:
//   service key    address . protocol . port     a cluster, external or load-balancer IP with a port
//   node-port key  protocol . port               a node port, on any address of the node that serves node ports
//   slot           0 … N-1                       the endpoints of a key are numbered without gaps

/** The name of the tables, unless an option says otherwise. A specialised proxier has tables of its own beside the main one's. */
export const defaultTableName = 'kpng'

/** Tables of the IPVS and userspace backends. Those of specialised ones are called `kpng-ipvs-NAME` and `kpng-userspace-NAME`. */
export const isForeignTable = (name: string): boolean => /^kpng-(ipvs|userspace)(-|$)/.test(name)

/** @param wanted the tables of this name; undefined: all tables of kpng */
export const isOurTable = (name: string, wanted: string | undefined): boolean =>
  wanted === undefined
    ? name === defaultTableName || (name.startsWith(`${defaultTableName}-`) && !isForeignTable(name))
    : name === wanted

export const names = {
  // Which addresses and ports are served, and how.
  clusterIps: 'cluster-ips', //               address: cluster IPs; what finds no endpoint there is refused
  externalServices: 'external-services', //   service key: external and load-balancer IPs, policy Cluster: masqueraded
  localServices: 'local-services', //         service key: the same, policy Local: who asks decides
  externalNodePorts: 'external-node-ports', // node-port key: policy Cluster
  localNodePorts: 'local-node-ports', //      node-port key: policy Local

  // Services that have a whole address, whatever the protocol and port.
  wholeClusterIps: 'whole-cluster-ips', //    address: cluster IPs
  externalAddresses: 'external-addresses', // address: external and load-balancer IPs, policy Cluster
  localAddresses: 'local-addresses', //       address: the same, policy Local

  // Endpoints: key . slot → address . port. The "local" ones are for clients from outside, under policy Local.
  endpoints: 'endpoints',
  localEndpoints: 'local-endpoints',
  nodePortEndpoints: 'node-port-endpoints',
  localNodePortEndpoints: 'local-node-port-endpoints',
  addressEndpoints: 'address-endpoints', //   address . slot → address
  localAddressEndpoints: 'local-address-endpoints',

  // A key without an endpoint for some client is refused, unless it is in one of these sets.
  dropped: 'dropped', //                      service key: somebody serves it, but not here (policy Local)
  droppedNodePorts: 'dropped-node-ports', //  node-port key: the same
  droppedAddresses: 'dropped-addresses', //   address: the same

  // Load-balancer source ranges.
  firewalled: 'firewalled', //                service key: only for sources in a set `allowed-…`

  // Session affinity.
  sticky: 'sticky', //                        service key → the chain that remembers for this service's time
  stickyNodePorts: 'sticky-node-ports', //    node-port key → the same
  affinity: 'affinity', //                    client . service key → endpoint; written by packets, expires by itself

  // The node.
  hairpin: 'hairpin', //                      address . address: an endpoint that reaches itself must be masqueraded
  pods: 'pods', //                            ranges: sources that are pods
  unmasqueraded: 'unmasqueraded', //          ranges: sources that reach cluster IPs under their own address
  nodePortAddresses: 'node-port-addresses', // ranges: addresses of this node that serve node ports
  serviceCidrs: 'service-cidrs', //           ranges: what cluster IPs are allocated from

  // Connections per Service, if they are counted.
  counted: 'counted', //                      service key, with a counter of first packets
  countedNodePorts: 'counted-node-ports', //  node-port key, the same
} as const

/** How many clients are remembered per family; further clients have no session affinity. The kernel reserves 16 bytes per client. */
const maxClients = 131_072

const serviceKey: readonly FieldKind[] = ['address', 'protocol', 'port']
const nodePortKey: readonly FieldKind[] = ['protocol', 'port']
const endpoint: readonly FieldKind[] = ['address', 'port']

/**
 * Sizes of the endpoint lists. The chain of the smallest size ≥ N draws from a list of N endpoints. Which chain that is, is data too:
 * the key is in the sets `…over-4`, `…over-16` and so on, up to its size.
 */
const listSizes: readonly number[] = [4, 16, 64, 256, 1024, 4096, 16384]

/** Whole addresses are rare, so one chain draws for all of them. */
const addressListSizes: readonly number[] = [16]

/** The kinds of endpoint lists. */
export interface ListKind {
  /** Prefixes the sets and chains that draw from it. */
  readonly name: '' | 'local-' | 'node-port-' | 'local-node-port-' | 'address-' | 'local-address-'
  readonly endpoints: string
  readonly key: readonly FieldKind[]
  readonly sizes: readonly number[]
  /** More endpoints than this are not used. */
  readonly maxEndpoints: number
}

const listKind = (
  name: ListKind['name'],
  endpoints: string,
  key: readonly FieldKind[],
  sizes = listSizes,
): ListKind => ({ name, endpoints, key, sizes, maxEndpoints: sizes.at(-1) ?? 0 })

export const listKinds = {
  services: listKind('', names.endpoints, serviceKey),
  localServices: listKind('local-', names.localEndpoints, serviceKey),
  nodePorts: listKind('node-port-', names.nodePortEndpoints, nodePortKey),
  localNodePorts: listKind('local-node-port-', names.localNodePortEndpoints, nodePortKey),
  addresses: listKind('address-', names.addressEndpoints, ['address'], addressListSizes),
  localAddresses: listKind('local-address-', names.localAddressEndpoints, ['address'], addressListSizes),
}

export const allListKinds: readonly ListKind[] = Object.values(listKinds)

/** The lists of a key. The length of a key says which kind it is. */
export function listKindsOfKey(family: TableFamily, key: string): readonly [all: ListKind, local: ListKind] {
  if (key.length === 8) return [listKinds.nodePorts, listKinds.localNodePorts]
  if (key.length === addressBytesIn[family]) return [listKinds.addresses, listKinds.localAddresses]
  return [listKinds.services, listKinds.localServices]
}

/** The set of the keys with more than `size` endpoints. */
export const overName = (kind: ListKind, size: number): string => `${kind.name}over-${size}`

/** The chain that remembers clients for this long. There is one chain per distinct timeout, made when it is first needed. */
export const rememberChain = (seconds: number): string => `remember-${seconds}`

/** How long a chain of that name remembers clients; undefined for a chain of another name. */
export function rememberedSeconds(chain: string): number | undefined {
  const seconds = /^remember-(\d+)$/.exec(chain)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

/** The sets and maps that do not depend on options nor on the family, by name. */
export const setShapes: ReadonlyMap<string, SetShape> = new Map<string, SetShape>([
  [names.clusterIps, { key: ['address'] }],
  [names.externalServices, { key: serviceKey }],
  [names.localServices, { key: serviceKey }],
  [names.externalNodePorts, { key: nodePortKey }],
  [names.localNodePorts, { key: nodePortKey }],
  [names.wholeClusterIps, { key: ['address'] }],
  [names.externalAddresses, { key: ['address'] }],
  [names.localAddresses, { key: ['address'] }],
  ...allListKinds.map(({ endpoints, key }): [string, SetShape] => [
    endpoints,
    { key: [...key, 'slot'], data: key.length === 1 ? ['address'] : endpoint },
  ]),
  ...allListKinds.flatMap((kind) =>
    kind.sizes.slice(0, -1).map((size): [string, SetShape] => [overName(kind, size), { key: kind.key }]),
  ),
  [names.dropped, { key: serviceKey }],
  [names.droppedNodePorts, { key: nodePortKey }],
  [names.droppedAddresses, { key: ['address'] }],
  [names.firewalled, { key: serviceKey }],
  [names.sticky, { key: serviceKey, data: 'verdict' }],
  [names.stickyNodePorts, { key: nodePortKey, data: 'verdict' }],
  [names.affinity, { key: ['address', ...serviceKey], data: endpoint, dynamic: { maxElements: maxClients } }],
  [names.hairpin, { key: ['address', 'address'] }],
  [names.pods, { key: ['address'], interval: true }],
  [names.unmasqueraded, { key: ['address'], interval: true }],
  [names.nodePortAddresses, { key: ['address'], interval: true }],
  [names.serviceCidrs, { key: ['address'], interval: true }],
])

const counterShapes: ReadonlyMap<string, SetShape> = new Map<string, SetShape>([
  [names.counted, { key: serviceKey, counter: true }],
  [names.countedNodePorts, { key: nodePortKey, counter: true }],
])

/** The names of the sets that count. */
export const counterSets: readonly string[] = [...counterShapes.keys()]

/** The sets and maps in the table of a family, by name. */
export const setsIn = (
  family: TableFamily,
  { counters }: { readonly counters: boolean },
): ReadonlyMap<string, SetShape> =>
  new Map([...setShapes, ...allowedSets(family, serviceKey), ...(counters ? counterShapes : [])])
