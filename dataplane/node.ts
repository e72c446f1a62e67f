import { addressBits, type Cidr, CidrSet, type Family, families, familyOf, parseCidrs, parseIp } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import { type DataplaneSettings, nodePortWords } from './settings.js'

/** What a backend knows of the machine it runs on. */
export interface Machine {
  /** The families that it can serve. */
  readonly families: readonly Family[]
  /** The addresses of its interfaces, without loopback and without those that need a zone. */
  readonly addresses: readonly string[]
}

/**
 * What all frontends share about this node. When an address of the node changes, this value changes and the frontends of node ports
 * do not.
 */
export interface NodeFacts {
  /** The families that the machine can serve. */
  readonly families: readonly Family[]
  /**
   * The addresses of the node in canonical form, the primary one of each family first. They come from the Node object. A node
   * that the source does not know (a state file without nodes, a wrong node name) has those of the machine's interfaces.
   */
  readonly addresses: readonly string[]
  /** Where node ports are open. A family without a CIDR: nowhere. */
  readonly nodePortCidrs: Readonly<Record<Family, readonly Cidr[]>>
  /** The addresses of pods, if pods are recognised by address. */
  readonly pods: CidrSet
  /** The addresses of the node and of its own pods: an endpoint there is local, even if the source did not say so. */
  readonly onNode: CidrSet
  /** What cluster IPs are allocated from. */
  readonly serviceCidrs: CidrSet
}

const nowhere = new CidrSet([])

/** Before the first view. */
export const unknownNode: NodeFacts = {
  families: [],
  addresses: [],
  nodePortCidrs: { IPv4: [], IPv6: [] },
  pods: nowhere,
  onNode: nowhere,
  serviceCidrs: nowhere,
}

export function nodeFacts(view: NodeView, machine: Machine, settings: DataplaneSettings): NodeFacts {
  const named = view.node?.addresses ?? []
  const addresses = (named.length > 0 ? named : machine.addresses).flatMap((text) => parseIp(text)?.text ?? [])
  const ownPods = parseCidrs(view.node?.podCidrs ?? [])
  return {
    families: machine.families,
    addresses,
    nodePortCidrs: {
      IPv4: nodePortCidrs('IPv4', addresses, settings),
      IPv6: nodePortCidrs('IPv6', addresses, settings),
    },
    pods: podCidrs(settings, ownPods),
    onNode: new CidrSet([...ownPods, ...parseCidrs(addresses.map(asCidr))]),
    serviceCidrs: new CidrSet([...view.serviceCidrs.values()].flatMap(({ cidrs }) => parseCidrs(cidrs))),
  }
}

/** Whether a client is inside the cluster: a pod, or this node. Its traffic ignores externalTrafficPolicy, as in kube-proxy. */
export const isInside = (node: NodeFacts, ip: string): boolean => node.onNode.has(ip) || node.pods.has(ip)

/** Whether two nodes have the same frontends. The ranges of node ports and Services are not part of a frontend. */
export const sameForFrontends = (a: NodeFacts, b: NodeFacts): boolean =>
  a.families.join() === b.families.join() &&
  a.addresses.join() === b.addresses.join() &&
  textOf(a.onNode) === textOf(b.onNode) &&
  textOf(a.pods) === textOf(b.pods)

export const sameFacts = (a: NodeFacts, b: NodeFacts): boolean =>
  sameForFrontends(a, b) &&
  textOf(a.serviceCidrs) === textOf(b.serviceCidrs) &&
  families.every((family) => textOf({ cidrs: a.nodePortCidrs[family] }) === textOf({ cidrs: b.nodePortCidrs[family] }))

const textOf = ({ cidrs }: Pick<CidrSet, 'cidrs'>): string => cidrs.map(({ text }) => text).join()

function podCidrs({ detectLocal, clusterCidrs }: DataplaneSettings, ownPods: readonly Cidr[]): CidrSet {
  switch (detectLocal.mode) {
    case 'ClusterCIDR':
      return new CidrSet(clusterCidrs)
    case 'NodeCIDR':
      return new CidrSet(ownPods)
    default:
      return nowhere
  }
}

function nodePortCidrs(family: Family, addresses: readonly string[], settings: DataplaneSettings): readonly Cidr[] {
  const { nodePortAddresses } = settings
  const cidrs = parseCidrs(nodePortAddresses.flatMap((entry) => nodePortWords[entry] ?? [entry]))
  const own = cidrs.filter((cidr) => cidr.family === family)
  if (nodePortAddresses.includes('primary')) {
    const primary = addresses.find((address) => familyOf(address) === family)
    if (primary !== undefined) own.push(...parseCidrs([asCidr(primary)]))
  } else if (own.length === 0) own.push(...parseCidrs([everyAddress[family]]))
  return new CidrSet(own).cidrs
}

const everyAddress: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0/0', IPv6: '::/0' }

const asCidr = (ip: string): string => `${ip}/${addressBits[familyOf(ip)]}`
