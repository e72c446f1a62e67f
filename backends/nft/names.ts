import { type Family, families } from './address.js'
import { blockLengths } from './source-blocks.js'

// Every name that kpng puts into the kernel, and what is behind it. Both tables (`ip kpng` and `ip6 kpng`) are made alike.
//
// Short forms used below:
//   service key    address . protocol . port     a cluster, external or load-balancer IP with a port
//   node-port key  protocol . port               a node port, on whichever address of the node
//   slot           0 … N-1                       the endpoints of a key are numbered without gaps

export const tableName = 'kpng'

export const names = {
  // Who is served, and how.
  clusterIps: 'cluster-ips', //               address: cluster IPs; what finds no endpoint there is refused
  externalServices: 'external-services', //   service key: external and load-balancer IPs, policy Cluster: masqueraded
  localServices: 'local-services', //         service key: the same, policy Local: who asks decides
  externalNodePorts: 'external-node-ports', // node-port key: policy Cluster
  localNodePorts: 'local-node-ports', //      node-port key: policy Local

  // Endpoints: key . slot → address . port. The "local" ones are for askers from outside, under policy Local.
  endpoints: 'endpoints',
  localEndpoints: 'local-endpoints',
  nodePortEndpoints: 'node-port-endpoints',
  localNodePortEndpoints: 'local-node-port-endpoints',

  // Keys without an endpoint for some asker are refused, unless they are here.
  dropped: 'dropped', //                      service key: somebody serves it, but not here (policy Local)
  droppedNodePorts: 'dropped-node-ports', //  node-port key: the same

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

  // Connections by service, where that is asked for.
  counted: 'counted', //                      service key, with a counter of first packets
  countedNodePorts: 'counted-node-ports', //  node-port key, the same
} as const

export type FieldKind = 'address' | 'protocol' | 'port' | 'slot'

/** What is in a set or map. */
export interface SetShape {
  readonly key: readonly FieldKind[]
  /** Maps only. An endpoint is `address . port`; a chain is the name in a `goto`. */
  readonly data?: 'endpoint' | 'chain'
  /** Keys are ranges: their bytes are the first key, then the last one. */
  readonly interval?: true
  /** Packets write it; we only take elements away. */
  readonly dynamic?: true
  /** Each element counts the packets that are looked up and are it. */
  readonly counter?: true
  /** It is in the table of this family only. */
  readonly family?: Family
  /** More than one service may ask for the same element. */
  readonly shared?: true
}

const serviceKey: readonly FieldKind[] = ['address', 'protocol', 'port']
const nodePortKey: readonly FieldKind[] = ['protocol', 'port']

/**
 * Sizes of the endpoint lists. A list of N endpoints is drawn from by the chain of the smallest size ≥ N; which one that is, is
 * data too: the key is in the sets `…over-4`, `…over-16` and so on up to its size.
 */
export const listSizes: readonly number[] = [4, 16, 64, 256, 1024, 4096, 16384]

/** More endpoints than this are not used. */
export const maxEndpoints = 16384

/** The four kinds of endpoint lists. `name` prefixes the sets and chains that draw from it. */
export interface ListKind {
  readonly name: '' | 'local-' | 'node-port-' | 'local-node-port-'
  readonly endpoints: string
  readonly key: readonly FieldKind[]
}

export const listKinds = {
  services: { name: '', endpoints: names.endpoints, key: serviceKey },
  localServices: { name: 'local-', endpoints: names.localEndpoints, key: serviceKey },
  nodePorts: { name: 'node-port-', endpoints: names.nodePortEndpoints, key: nodePortKey },
  localNodePorts: { name: 'local-node-port-', endpoints: names.localNodePortEndpoints, key: nodePortKey },
} as const satisfies Record<string, ListKind>

export const allListKinds: readonly ListKind[] = Object.values(listKinds)

/** The set of the keys with more than `size` endpoints. */
export const overName = (kind: ListKind, size: number): string => `${kind.name}over-${size}`

/** The set of service keys, each with sources that may ask: a block of addresses with so many leading bits in common. */
export const allowedName = (bits: number): string => `allowed-${bits}`

/** The chain that remembers clients for so long. One a distinct time-out; made when it is first needed. */
export const rememberChain = (seconds: number): string => `remember-${seconds}`

/** For how long a chain of that name remembers; undefined for a chain of another name. */
export function rememberedSeconds(chain: string): number | undefined {
  const seconds = /^remember-(\d+)$/.exec(chain)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

/** A set without elements, whose name says what the table was when it was made. Any other table than that is not ours any more. */
export const sealSet = (digest: string): string => `rules-${digest}`

export const isSealSet = (name: string): boolean => /^rules-[0-9a-f]+$/.test(name)

const isInBoth = (bits: number): boolean => families.every((family) => blockLengths(family).includes(bits))

/** Every set and map that is there whatever the options, by name. */
export const setShapes: ReadonlyMap<string, SetShape> = new Map<string, SetShape>([
  [names.clusterIps, { key: ['address'], shared: true }],
  [names.externalServices, { key: serviceKey }],
  [names.localServices, { key: serviceKey }],
  [names.externalNodePorts, { key: nodePortKey }],
  [names.localNodePorts, { key: nodePortKey }],
  ...allListKinds.map(({ endpoints, key }): [string, SetShape] => [
    endpoints,
    { key: [...key, 'slot'], data: 'endpoint' },
  ]),
  ...allListKinds.flatMap((kind) =>
    listSizes.slice(0, -1).map((size): [string, SetShape] => [overName(kind, size), { key: kind.key }]),
  ),
  [names.dropped, { key: serviceKey }],
  [names.droppedNodePorts, { key: nodePortKey }],
  [names.firewalled, { key: serviceKey }],
  ...families.flatMap((family) =>
    blockLengths(family).map((bits): [string, SetShape] => [
      allowedName(bits),
      { key: [...serviceKey, 'address'], ...(isInBoth(bits) ? {} : { family }) },
    ]),
  ),
  [names.sticky, { key: serviceKey, data: 'chain' }],
  [names.stickyNodePorts, { key: nodePortKey, data: 'chain' }],
  [names.affinity, { key: ['address', ...serviceKey], data: 'endpoint', dynamic: true }],
  [names.hairpin, { key: ['address', 'address'], shared: true }],
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

const allShapes: ReadonlyMap<string, SetShape> = new Map([...setShapes, ...counterShapes])

/** Every set and map that is there with these options, by name. */
export const shapesWith = ({ counters }: { readonly counters: boolean }): ReadonlyMap<string, SetShape> =>
  counters ? allShapes : setShapes

/** Those of them that are in the table of a family. */
export const shapesIn = (family: Family, shapes: ReadonlyMap<string, SetShape>): [string, SetShape][] =>
  [...shapes].filter(([, shape]) => shape.family === undefined || shape.family === family)

/** Undefined for a set that is not ours. */
export const findShape = (name: string): SetShape | undefined => allShapes.get(name)

export function shapeOf(name: string): SetShape {
  const shape = findShape(name)
  if (!shape) throw new Error(`There is no set or map "${name}" in the ruleset.`)
  return shape
}

/** A set in one of the two tables: `ip endpoints`. */
export type SetPath = `${Family} ${string}`

/** The same string each time: it is looked up once an element, and a string that is new must be hashed first. */
export function setPath(family: Family, name: string): SetPath {
  const known = setPaths[family].get(name)
  if (known !== undefined) return known
  const path: SetPath = `${family} ${name}`
  setPaths[family].set(name, path)
  return path
}

const setPaths: Readonly<Record<Family, Map<string, SetPath>>> = { ip: new Map(), ip6: new Map() }

export function splitSetPath(path: SetPath): { family: Family; name: string } {
  const space = path.indexOf(' ')
  return { family: path.slice(0, space) as Family, name: path.slice(space + 1) }
}
