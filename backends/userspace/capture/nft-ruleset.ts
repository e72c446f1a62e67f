import type { Family } from '@kpng/api'
import { type Fate, fateOf, type Portal, servicePortName } from '../portal.js'
import type { NodeAddresses, OpenPortal } from './capture.js'
import { commentOf } from './portal-text.js'
import type { BoundIps } from './portals.js'

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

interface Words {
  readonly family: string
  readonly address: string
  readonly header: string
  readonly unreachable: string
}

const words: Record<Family, Words> = {
  IPv4: { family: 'ip', address: 'ipv4_addr', header: 'ip', unreachable: 'icmp type port-unreachable' },
  IPv6: { family: 'ip6', address: 'ipv6_addr', header: 'ip6', unreachable: 'icmpv6 type port-unreachable' },
}

/** `ip kpng-userspace`, as nft names a table. */
export const tableName = ({ family, table }: TableLayout): string => `${words[family].family} ${table}`

/** The constant part. It is written in one transaction with the elements, after the old table is deleted. */
export function skeleton(layout: TableLayout, boundIps: BoundIps): string {
  const { address, header, unreachable } = words[layout.family]
  const destination = `${header} daddr . meta l4proto . th dport`
  const toNodePort = `${header} daddr @node-port-addresses fib daddr type local`
  const steer = (
    protocol: Portal['protocol'],
    target: string,
  ) => `    meta l4proto ${protocol} ${target} ${destination} map @portals
    ${toNodePort} meta l4proto ${protocol} ${target} meta l4proto . th dport map @node-ports`
  const toProxy = (protocol: Portal['protocol'], onAllAddresses: string) => {
    const ip = boundIps[protocol]
    return steer(protocol, ip === undefined ? onAllAddresses : `dnat to ${ip.includes(':') ? `[${ip}]` : ip} :`)
  }
  const redirect = 'redirect to :'
  // A redirect of the node's own packets goes to loopback, but a UDP answer to an address of the node leaves from that very
  // address, and conntrack would not know it. So these packets are sent to where they came from.
  const toSelf = `dnat to ${header} saddr :`
  return `table ${tableName(layout)} {
  comment "kpng: portals of the userspace backend"
  set inside { type ${address}; flags interval; }
  set node-port-addresses { type ${address}; flags interval; }
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
    ${toNodePort} meta l4proto . th dport vmap @node-port-inside-fates
  }
  chain from-outside {
    ${destination} vmap @outside-fates
    ${toNodePort} meta l4proto . th dport vmap @node-port-outside-fates
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
export function elementsOf({ portal, place }: OpenPortal): Element[] {
  const { protocol, address, port, family, allowedSources } = portal
  const comment = ` comment "${commentOf(servicePortName(portal))}"`
  const nodePort = portal.kind === 'nodePort'
  const key = `${nodePort ? '' : `${address} . `}${protocol} . ${port}`
  const elements = [
    { set: nodePort ? 'node-ports' : 'portals', key, value: `${comment} : ${place.port}` },
    { set: 'proxy-ports', key: `${protocol} . ${place.port}`, value: comment },
  ]
  for (const side of ['inside', 'outside'] as const) {
    const fate = fateOf(portal[side])
    if (fate === 'forward') continue
    elements.push({ set: `${nodePort ? 'node-port-' : ''}${side}-fates`, key, value: `${comment} : ${verdicts[fate]}` })
  }
  if (allowedSources) {
    elements.push({ set: 'guarded', key, value: comment })
    const cidrs = allowedSources.map(({ text }) => text)
    for (const cidr of intervalsOf(cidrs, family)) {
      elements.push({ set: 'source-ranges', key: `${key} . ${cidr}`, value: comment })
    }
  }
  return elements
}

/** The elements that stand for the node. */
export const nodeElements = (family: Family, { insideCidrs, nodePortCidrs }: NodeAddresses): Element[] => [
  ...intervalsOf(insideCidrs, family).map((key) => ({ set: 'inside', key, value: '' })),
  ...intervalsOf(nodePortCidrs[family], family).map((key) => ({ set: 'node-port-addresses', key, value: '' })),
]

/** CIDRs of one family as an interval set has them: the whole range is two halves, one address has no prefix. */
export function intervalsOf(cidrs: readonly string[], family: Family): string[] {
  const whole = { IPv4: ['0.0.0.0/1', '128.0.0.0/1'], IPv6: ['::/1', '8000::/1'] }[family]
  const own = cidrs.filter((cidr) => cidr.includes(':') === (family === 'IPv6'))
  return own.flatMap((cidr) => (cidr.endsWith('/0') ? whole : [cidr.replace(/(?<=\..*)\/32$|\/128$/, '')]))
}

const line = (action: 'add' | 'delete', table: string, { set, key, value }: Element): string =>
  `${action} element ${table} ${set} { ${key}${action === 'add' ? value : ''} }`

const textOf = ({ set, key, value }: Element): string => `${set} ${key}${value}`

/** What makes some elements become others. What is in both is not touched. */
export function elementChanges(layout: TableLayout, removed: readonly Element[], added: readonly Element[]): string[] {
  const table = tableName(layout)
  const index = (elements: readonly Element[]) => new Map(elements.map((element) => [textOf(element), element]))
  const [before, after] = [index(removed), index(added)]
  const lines: string[] = []
  for (const [text, element] of before) if (!after.has(text)) lines.push(line('delete', table, element))
  for (const [text, element] of after) if (!before.has(text)) lines.push(line('add', table, element))
  return lines
}

/** What `nft list table` prints, taken apart. */
export interface Listing {
  /** Everything but the elements. */
  readonly rules: string
  /** As `set key value`. */
  readonly elements: ReadonlySet<string>
}

export function readListing(text: string): Listing {
  const elements = new Set<string>()
  let set = ''
  const rules = text.replace(
    /(?:set|map) (\S+) \{|\s*elements = \{([^}]*)\}/g,
    (found, name?: string, list?: string) => {
      if (list === undefined) {
        set = name ?? ''
        return found
      }
      for (const element of list.split(',')) elements.add(`${set} ${element.trim().replace(/\s+/g, ' ')}`)
      return ''
    },
  )
  return { rules, elements }
}

/** Whether a table holds exactly these elements. */
export function holds({ elements }: Listing, expected: readonly Element[]): boolean {
  const texts = new Set(expected.map(textOf))
  return texts.size === elements.size && [...texts].every((text) => elements.has(text))
}
