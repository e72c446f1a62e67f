import { createHash } from 'node:crypto'
import { type Family, hostPort } from '@kpng/api'
import { type Fate, fateOf, isServed, type Portal, servicePortName } from '../portal.js'
import type { NodeAddresses, OpenPortal } from './capture.js'
import { commentOf } from './portal-text.js'
import { type BoundIps, defaultTable } from './portals.js'

// The chains that people know from kube-proxy's userspace mode, by names of our own: what kube-proxy left is not ours to write to or to
// take away. "Container" is everything that comes in over an interface, "host" what this node's own programs send.

export interface Chains {
  readonly portalsContainer: string
  readonly portalsHost: string
  readonly nodePortContainer: string
  readonly nodePortHost: string
  /** What is refused or dropped because there is no endpoint. kube-proxy left such connections to be closed. */
  readonly filter: string
}

/** The chains of one proxy. iptables takes names of 28 characters at most, so there is room for four beside the longest. */
const chainsWith = (suffix: string): Chains => ({
  portalsContainer: `KPNG-PORTALS-CONTAINER${suffix}`,
  portalsHost: `KPNG-PORTALS-HOST${suffix}`,
  nodePortContainer: `KPNG-NODEPORT-CONTAINER${suffix}`,
  nodePortHost: `KPNG-NODEPORT-HOST${suffix}`,
  filter: `KPNG-PORTALS-FILTER${suffix}`,
})

/** The chains of the proxy that has this name. The main one's have the plain names. */
export const chainsOf = (table: string): Chains =>
  chainsWith(table === defaultTable ? '' : `-${createHash('sha256').update(table).digest('hex').slice(0, 4)}`)

/** The chains of every kpng that `iptables -S` shows. */
export function chainsFound(listed: string): Chains[] {
  const suffixes = [...listed.matchAll(/^-N KPNG-(?:PORTALS|NODEPORT)-[A-Z]+(|-[0-9a-f]{4})$/gm)].map(
    ([, suffix = '']) => suffix,
  )
  return [...new Set(suffixes)].map(chainsWith)
}

export const tables = ['nat', 'filter'] as const
export type Table = (typeof tables)[number]

export const chainsIn = ({ filter, ...nat }: Chains): Readonly<Record<Table, readonly string[]>> => ({
  nat: Object.values(nat),
  filter: [filter],
})

export interface Jump {
  readonly table: Table
  readonly from: string
  readonly to: string
  readonly first: boolean
  readonly match: readonly string[]
}

const comment = (text: string) => ['-m', 'comment', '--comment', text]
const clusterIps = comment('kpng: service addresses, before the node ports')
const nodePorts = [
  ...['-m', 'addrtype', '--dst-type', 'LOCAL'],
  ...comment('kpng: node ports, after the service addresses'),
]

/** From the system's chains to ours. Portals come first: a load-balancer IP may be a local address too. */
export const jumpsTo = (chains: Chains): readonly Jump[] => [
  { table: 'nat', from: 'PREROUTING', to: chains.portalsContainer, first: true, match: clusterIps },
  { table: 'nat', from: 'OUTPUT', to: chains.portalsHost, first: true, match: clusterIps },
  { table: 'nat', from: 'PREROUTING', to: chains.nodePortContainer, first: false, match: nodePorts },
  { table: 'nat', from: 'OUTPUT', to: chains.nodePortHost, first: false, match: nodePorts },
  ...['INPUT', 'FORWARD', 'OUTPUT'].map((from) => ({
    table: 'filter' as const,
    from,
    to: chains.filter,
    first: true,
    match: comment('kpng: services without endpoints'),
  })),
]

/** Everything in our chains of one family, and the jumps to them, as iptables-save prints it. */
export interface Rules {
  readonly nat: readonly string[]
  readonly filter: readonly string[]
}

export function rulesOf(
  family: Family,
  allOpen: readonly OpenPortal[],
  node: NodeAddresses,
  boundIps: BoundIps,
  chains: Chains,
): Rules {
  const open = allOpen.filter(({ portal }) => portal.family === family)
  // A portal that refuses everybody has no rule in nat: its packets reach the filter chain with the service's address.
  const served = open.filter(({ portal }) => isServed(portal))
  return {
    nat: served.flatMap((each) => natRules(each, node, boundIps, chains)),
    filter: open.flatMap((each) => filterRules(each, node, chains)),
  }
}

/** The input of `iptables-restore --noflush`: all of our chains, whole, and nothing else. */
export function restoreInput({ nat, filter }: Rules, chains: Chains): string {
  const own = chainsIn(chains)
  const declare = (names: readonly string[]) => names.map((name) => `:${name} - [0:0]`)
  return [
    ...['*nat', ...declare(own.nat), ...nat, 'COMMIT'],
    ...['*filter', ...declare(own.filter), ...filter, 'COMMIT'],
    '',
  ].join('\n')
}

/** Of what iptables-save printed, the lines that are ours. */
export function ourLines(saved: string, chains: Chains): string[] {
  const own = new Set<string>(Object.values(chains))
  return saved.split('\n').filter((line) => {
    const [, chain = '', target = ''] = /^-A (\S+) (?:.* )?-j (\S+)/.exec(line) ?? []
    return own.has(chain) || own.has(target)
  })
}

/** Whether these lines are the rules and the jumps to our chains. The system's chains may hold more between the jumps. */
export function areRules(lines: readonly string[], { nat, filter }: Rules, chains: Chains): boolean {
  const own = Object.values(chains)
  const isJump = (line: string) => !own.some((chain) => line.startsWith(`-A ${chain} `))
  const expectedJumps = jumpsTo(chains).map(
    ({ from, match, to }) => `-A ${from} ${match.map(quoted).join(' ')} -j ${to}`,
  )
  const byChain = (rules: readonly string[]) =>
    own.flatMap((chain) => rules.filter((rule) => rule.startsWith(`-A ${chain} `)))
  return (
    lines.filter(isJump).sort().join('\n') === expectedJumps.sort().join('\n') &&
    byChain(lines).join('\n') === byChain([...nat, ...filter]).join('\n')
  )
}

const quoted = (word: string): string => (word.includes(' ') ? `"${word}"` : word)

/** One for each range of the node's addresses that serve node ports. */
function matchesOf(portal: Portal, { nodePortCidrs }: NodeAddresses): string[] {
  const { kind, family, address, protocol, port } = portal
  const ranges = kind === 'nodePort' ? nodePortCidrs[family] : [`${address}/${family === 'IPv4' ? 32 : 128}`]
  return ranges.map((range) => {
    const destination = range.endsWith('/0') ? '' : `-d ${range} `
    return `${destination}-p ${protocol} ${commentMatch(portal)} -m ${protocol} --dport ${port}`
  })
}

const commentMatch = (portal: Portal): string => `-m comment --comment "${commentOf(servicePortName(portal))}"`

function natRules({ portal, place }: OpenPortal, node: NodeAddresses, boundIps: BoundIps, chains: Chains): string[] {
  const bindIp = boundIps[portal.protocol]
  const nodeIp = node.nodeIps[portal.family]
  const redirect = `-j REDIRECT --to-ports ${place.port}`
  const dnat = (ip: string) => `-j DNAT --to-destination ${hostPort(ip, place.port)}`
  // A socket on all addresses is reached at the address of the interface the packet came in by; what this node sends itself goes to the
  // node's own address.
  const container = bindIp === undefined ? redirect : dnat(bindIp)
  const host = bindIp !== undefined ? dnat(bindIp) : nodeIp !== undefined ? dnat(nodeIp) : redirect
  const [containerChain, hostChain] =
    portal.kind === 'nodePort'
      ? [chains.nodePortContainer, chains.nodePortHost]
      : [chains.portalsContainer, chains.portalsHost]
  return matchesOf(portal, node).flatMap((match) => [
    `-A ${containerChain} ${match} ${container}`,
    `-A ${hostChain} ${match} ${host}`,
  ])
}

function filterRules({ portal, place }: OpenPortal, node: NodeAddresses, chains: Chains): string[] {
  const { protocol, family, kind } = portal
  const [inside, outside] = [fateOf(portal.inside), fateOf(portal.outside)]
  // Only at this node: a forwarded packet may have the same port by chance, such as the answer to a client that uses it.
  const toProxyPort = `-A ${chains.filter} -p ${protocol} ${commentMatch(portal)} -m ${protocol} --dport ${place.port} -m addrtype --dst-type LOCAL`
  // Clients must not use the proxy port itself: a connection that did not come through a portal bypasses the service's policies.
  const rules = [`${toProxyPort} -m conntrack ! --ctstate DNAT ${target('refuse', portal)}`]
  if (isServed(portal)) return rules
  // UDP clients in mid-flow are still led here by conntrack; they are told like everybody else.
  if (protocol === 'udp') rules.push(`${toProxyPort} ${target(outside, portal)}`)
  for (const each of matchesOf(portal, node)) {
    const match = `${each}${kind === 'nodePort' ? ' -m addrtype --dst-type LOCAL' : ''} -m conntrack --ctstate NEW`
    if (inside !== outside) {
      for (const cidr of node.insideCidrs.filter((text) => text.includes(':') === (family === 'IPv6'))) {
        rules.push(`-A ${chains.filter} -s ${cidr} ${match} ${target(inside, portal)}`)
      }
      rules.push(`-A ${chains.filter} ${match} -m addrtype --src-type LOCAL ${target(inside, portal)}`)
    }
    rules.push(`-A ${chains.filter} ${match} ${target(outside, portal)}`)
  }
  return rules
}

function target(fate: Fate, { protocol, family }: Portal): string {
  if (fate === 'drop') return '-j DROP'
  if (protocol === 'tcp') return '-j REJECT --reject-with tcp-reset'
  return `-j REJECT --reject-with ${family === 'IPv4' ? 'icmp-port-unreachable' : 'icmp6-port-unreachable'}`
}
