import type { Family } from '../address.js'
import type { Protocol } from '../portal.js'
import type { Fate } from '../usable-endpoints.js'
import type { OpenPortal } from './capture.js'
import { commentOf } from './portal-text.js'

// The tables that steer packets to the proxy sockets, one for each family:
//
//   packet ──► filter, before NAT ──────────────────────► nat ──────────────► proxy socket ──► endpoint
//              who asks, from where?                       service address
//              not in the source ranges: drop              → proxy port
//              no endpoint anywhere: refuse; none here: drop
//
// Rules never change: services are elements of maps.

export interface TableLayout {
  readonly family: Family
  readonly table: string
}

/** The one address at which the proxy sockets of a protocol listen. Undefined: all addresses. */
export type BoundIps = Readonly<Record<Protocol, string | undefined>>

interface Words {
  readonly family: string
  readonly address: string
  readonly header: string
  readonly unreachable: string
}

const words: Record<Family, Words> = {
  v4: { family: 'ip', address: 'ipv4_addr', header: 'ip', unreachable: 'icmp type port-unreachable' },
  v6: { family: 'ip6', address: 'ipv6_addr', header: 'ip6', unreachable: 'icmpv6 type port-unreachable' },
}

/** `ip kpng-userspace`, as nft names a table. */
export const tableName = ({ family, table }: TableLayout): string => `${words[family].family} ${table}`

/** The constant part. It is written in one transaction with the elements, after the old table is deleted. */
export function skeleton(layout: TableLayout, boundIps: BoundIps): string {
  const { address, header, unreachable } = words[layout.family]
  const destination = `${header} daddr . meta l4proto . th dport`
  const steer = (
    protocol: Protocol,
    target: string,
  ) => `    meta l4proto ${protocol} ${target} ${destination} map @portals
    fib daddr type local meta l4proto ${protocol} ${target} meta l4proto . th dport map @node-ports`
  const toProxy = (protocol: Protocol, onAllAddresses: string) => {
    const ip = boundIps[protocol]
    return steer(protocol, ip === undefined ? onAllAddresses : `dnat to ${layout.family === 'v6' ? `[${ip}]` : ip} :`)
  }
  const redirect = 'redirect to :'
  // A redirect of the node's own packets goes to loopback, but a UDP answer to an address of the node leaves from that very
  // address, and conntrack would not know it. So these packets are sent to where they came from.
  const toSelf = `dnat to ${header} saddr :`
  return `table ${tableName(layout)} {
  comment "kpng: portals of the userspace backend"
  set inside { type ${address}; flags interval; }
  map portals { type ${address} . inet_proto . inet_service : inet_service; }
  map node-ports { type inet_proto . inet_service : inet_service; }
  map inside-fates { type ${address} . inet_proto . inet_service : verdict; }
  map outside-fates { type ${address} . inet_proto . inet_service : verdict; }
  map node-port-inside-fates { type inet_proto . inet_service : verdict; }
  map node-port-outside-fates { type inet_proto . inet_service : verdict; }
  set guarded { type ${address} . inet_proto . inet_service; }
  set source-ranges { type ${address} . inet_proto . inet_service . ${address}; flags interval; }
  set proxy-ports { type inet_proto . inet_service; }
  chain refuse {
    meta l4proto tcp reject with tcp reset
    reject with ${unreachable}
  }
  chain check-source {
    fib saddr type local return
    ${destination} . ${header} saddr @source-ranges return
    drop
  }
  chain from-inside {
    ${destination} vmap @inside-fates
    fib daddr type local meta l4proto . th dport vmap @node-port-inside-fates
  }
  chain from-outside {
    ${destination} vmap @outside-fates
    fib daddr type local meta l4proto . th dport vmap @node-port-outside-fates
  }
  chain filter-prerouting {
    type filter hook prerouting priority -110; policy accept;
    meta l4proto tcp ct state != new accept
    ${destination} @guarded jump check-source
    ${header} saddr @inside goto from-inside
    fib saddr type local goto from-inside
    goto from-outside
  }
  chain filter-output {
    type filter hook output priority -110; policy accept;
    meta l4proto tcp ct state != new accept
    goto from-inside
  }
  chain filter-input {
    type filter hook input priority 0; policy accept;
    ct status dnat accept
    meta l4proto . th dport @proxy-ports goto refuse
  }
  chain nat-prerouting {
    type nat hook prerouting priority -100; policy accept;
${toProxy('tcp', redirect)}
${toProxy('udp', redirect)}
  }
  chain nat-output {
    type nat hook output priority -100; policy accept;
${toProxy('tcp', redirect)}
${toProxy('udp', toSelf)}
  }
}
`
}

/** One element of a map or set: where it is, its key, and what follows the key. */
export interface Element {
  readonly set: string
  readonly key: string
  readonly value: string
}

const verdicts: Record<Exclude<Fate, 'forward'>, string> = { refuse: 'goto refuse', drop: 'drop' }

/** The elements that one open portal stands for. */
export function elementsOf({ portal, place, fates }: OpenPortal): Element[] {
  const comment = ` comment "${commentOf(portal.servicePort)}"`
  const service = `${portal.protocol} . ${portal.port}`
  const nodePort = portal.ip === ''
  const key = nodePort ? service : `${portal.ip} . ${service}`
  const elements = [
    { set: nodePort ? 'node-ports' : 'portals', key, value: `${comment} : ${place.port}` },
    { set: 'proxy-ports', key: `${portal.protocol} . ${place.port}`, value: comment },
  ]
  for (const side of ['inside', 'outside'] as const) {
    const fate = fates[side]
    if (fate === 'forward') continue
    elements.push({ set: `${nodePort ? 'node-port-' : ''}${side}-fates`, key, value: `${comment} : ${verdicts[fate]}` })
  }
  if (portal.sourceRanges && !nodePort) {
    elements.push({ set: 'guarded', key, value: comment })
    for (const cidr of rangesOf(portal.sourceRanges.cidrs, portal.family)) {
      elements.push({ set: 'source-ranges', key: `${key} . ${cidr}`, value: comment })
    }
  }
  return elements
}

/** CIDRs of one family as nft takes them in an interval set: the whole range is written as the two halves it has no word for. */
export function rangesOf(cidrs: readonly string[], family: Family): string[] {
  const whole = { v4: ['0.0.0.0/1', '128.0.0.0/1'], v6: ['::/1', '8000::/1'] }[family]
  const own = cidrs.filter((cidr) => cidr.includes(':') === (family === 'v6'))
  return own.flatMap((cidr) => (cidr.endsWith('/0') ? whole : [cidr]))
}

const line = (action: 'add' | 'delete', table: string, { set, key, value }: Element): string =>
  `${action} element ${table} ${set} { ${key}${action === 'add' ? value : ''} }`

/** What makes the elements of some portals become those of others. What is in both is not touched. */
export function elementChanges(
  layout: TableLayout,
  removed: readonly OpenPortal[],
  added: readonly OpenPortal[],
): string[] {
  const table = tableName(layout)
  const ofFamily = (portals: readonly OpenPortal[]) =>
    portals.filter(({ portal }) => portal.family === layout.family).flatMap(elementsOf)
  const index = (elements: readonly Element[]) => new Map(elements.map((e) => [`${e.set}|${e.key}|${e.value}`, e]))
  const [before, after] = [index(ofFamily(removed)), index(ofFamily(added))]
  const lines: string[] = []
  for (const [name, element] of before) if (!after.has(name)) lines.push(line('delete', table, element))
  for (const [name, element] of after) if (!before.has(name)) lines.push(line('add', table, element))
  return lines
}
