import { type Family, hostPort } from '../address.js'
import type { Protocol } from '../portal.js'
import type { Fate } from '../usable-endpoints.js'
import type { OpenPortal, Steering } from './capture.js'
import { commentOf } from './portal-text.js'

// The chains that people know from kube-proxy's userspace mode, by names of our own: what kube-proxy left is not ours to write to or to
// take away. "Container" is everything that comes in over an interface, "host" what this node's own programs send.

/** iptables takes names of 28 characters at most. */
export const chains = {
  portalsContainer: 'KPNG-PORTALS-CONTAINER',
  portalsHost: 'KPNG-PORTALS-HOST',
  nodePortContainer: 'KPNG-NODEPORT-CONTAINER',
  nodePortHost: 'KPNG-NODEPORT-HOST',
  /** What is refused or dropped because there is no endpoint. kube-proxy left such connections to be closed. */
  filter: 'KPNG-PORTALS-FILTER',
} as const

export const tables = ['nat', 'filter'] as const
export type Table = (typeof tables)[number]

export const chainsIn: Readonly<Record<Table, readonly string[]>> = {
  nat: [chains.portalsContainer, chains.portalsHost, chains.nodePortContainer, chains.nodePortHost],
  filter: [chains.filter],
}

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
export const jumps: readonly Jump[] = [
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

export interface RuleLayout {
  readonly family: Family
  /** The one address at which the proxy sockets of a protocol listen. Undefined: all addresses. */
  readonly boundIps: Readonly<Record<Protocol, string | undefined>>
}

/** The input of `iptables-restore --noflush`: all of our chains, whole, and nothing else. */
export function restoreInput(layout: RuleLayout, steering: Steering): string {
  const open = steering.open.filter(({ portal }) => portal.family === layout.family)
  const nat = open.filter(forwards).flatMap((portal) => natRules(layout, portal, steering.nodeIps[layout.family]))
  const filter = open.flatMap((portal) => filterRules(portal, steering.insideCidrs))
  const declare = (names: readonly string[]) => names.map((name) => `:${name} - [0:0]`)
  return [
    ...['*nat', ...declare(chainsIn.nat), ...nat, 'COMMIT'],
    ...['*filter', ...declare(chainsIn.filter), ...filter, 'COMMIT'],
    '',
  ].join('\n')
}

/** A portal that refuses everybody has no rule in nat: its packets reach the filter chain with the service's address. */
const forwards = ({ fates }: OpenPortal): boolean => fates.inside === 'forward' || fates.outside === 'forward'

function matchOf({ portal }: OpenPortal): string {
  const destination = portal.ip === '' ? '' : `-d ${portal.ip}/${portal.family === 'v4' ? 32 : 128} `
  const { protocol } = portal
  return `${destination}-p ${protocol} -m comment --comment "${commentOf(portal.servicePort)}" -m ${protocol} --dport ${portal.port}`
}

function natRules({ boundIps }: RuleLayout, open: OpenPortal, nodeIp: string | undefined): string[] {
  const { portal, place } = open
  const bindIp = boundIps[portal.protocol]
  const redirect = `-j REDIRECT --to-ports ${place.port}`
  const dnat = (ip: string) => `-j DNAT --to-destination ${hostPort(ip, place.port)}`
  // A socket on all addresses is reached at the address of the interface the packet came in by; what this node sends itself goes to the
  // node's own address.
  const container = bindIp === undefined ? redirect : dnat(bindIp)
  const host = bindIp !== undefined ? dnat(bindIp) : nodeIp !== undefined ? dnat(nodeIp) : redirect
  const [containerChain, hostChain] =
    portal.ip === '' ? [chains.nodePortContainer, chains.nodePortHost] : [chains.portalsContainer, chains.portalsHost]
  return [`-A ${containerChain} ${matchOf(open)} ${container}`, `-A ${hostChain} ${matchOf(open)} ${host}`]
}

function filterRules(open: OpenPortal, insideCidrs: readonly string[]): string[] {
  const { portal, place, fates } = open
  const { protocol, family } = portal
  // The proxy port itself is no way in: whoever did not come through a portal has bypassed the service's policies.
  const rules = [
    `-A ${chains.filter} -p ${protocol} -m comment --comment "${commentOf(portal.servicePort)}" -m ${protocol} --dport ${place.port} -m conntrack ! --ctstate DNAT ${target('refuse', protocol)}`,
  ]
  if (forwards(open)) return rules
  // UDP clients in mid-flow are still led here by conntrack; they are told like everybody else.
  if (protocol === 'udp') {
    rules.push(
      `-A ${chains.filter} -p udp -m comment --comment "${commentOf(portal.servicePort)}" -m udp --dport ${place.port} ${target(fates.outside, protocol)}`,
    )
  }
  const match = `${matchOf(open)}${portal.ip === '' ? ' -m addrtype --dst-type LOCAL' : ''} -m conntrack --ctstate NEW`
  if (fates.inside !== fates.outside) {
    for (const cidr of insideCidrs.filter((text) => text.includes(':') === (family === 'v6'))) {
      rules.push(`-A ${chains.filter} -s ${cidr} ${match} ${target(fates.inside, protocol)}`)
    }
    rules.push(`-A ${chains.filter} ${match} -m addrtype --src-type LOCAL ${target(fates.inside, protocol)}`)
  }
  rules.push(`-A ${chains.filter} ${match} ${target(fates.outside, protocol)}`)
  return rules
}

const target = (fate: Fate, protocol: string): string =>
  fate === 'drop' ? '-j DROP' : protocol === 'tcp' ? '-j REJECT --reject-with tcp-reset' : '-j REJECT'
