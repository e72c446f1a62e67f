import type { Cidr, Family } from '@kpng/api'
import type { DetectLocal, NodeFacts } from '@kpng/dataplane'
import { allowedSets, daddr, l4proto, serviceKey, sourceRules } from '@kpng/linux/nftables'
import { markMasquerade, markPrefix, markPrefixMask, tableFamily } from './names.js'
import type { Element } from './rule-elements.js'

// The rules, which do not change with Services: all that changes is in sets and maps. IPVS takes packets in the hooks input (priority 98
// and 99) and output (-99 and -98). Our chains stand right before it, after the filters of others.

/** What the rules say about the node. */
export interface Place {
  readonly family: Family
  /** Matches of traffic from pods: one of them must match. Empty if pods cannot be told from others. */
  readonly pods: readonly string[]
  /** What cluster IPs come from. */
  readonly serviceRanges: readonly string[]
}

export function placeOf(family: Family, { pods, serviceCidrs }: NodeFacts, detectLocal: DetectLocal): Place {
  const own = (cidrs: readonly Cidr[]) => cidrs.filter((cidr) => cidr.family === family)
  return {
    family,
    pods: podMatches(own(pods.cidrs), detectLocal),
    serviceRanges: own(serviceCidrs.cidrs).map(({ text }) => text),
  }
}

const podMatches = (cidrs: readonly Cidr[], detectLocal: DetectLocal): string[] => {
  switch (detectLocal.mode) {
    case 'BridgeInterface':
      return [`iifname "${detectLocal.name}"`]
    case 'InterfaceNamePrefix':
      return [`iifname "${detectLocal.prefix}*"`]
    default:
      return cidrs.map(({ family, text }) => `${tableFamily[family]} saddr ${text}`)
  }
}

/** Sets by name: what their elements are, and for maps what they lead to. `A` stands for an address. */
const keyedSets: readonly (readonly [name: string, key: string, more?: string])[] = [
  ['servers', ''],
  ['refused-inside', '', ': verdict'],
  ['refused-outside', '', ': verdict'],
  ['marks-inside', '', ': mark'],
  ['marks-outside', '', ': mark'],
  ['restricted', ''],
  ['masquerade-all', ''],
  ['masquerade-others', ''],
]

/** What the elements of sets begin with, by the prefix of the sets' names. */
const keys = [
  ['', 'A . inet_proto . inet_service'],
  ['whole-', 'A . inet_proto'],
] as const

/** Every set of a table, with its type. */
const setsIn = (family: Family): ReadonlyMap<string, string> =>
  new Map([
    ...keys.flatMap(([prefix, key]) =>
      allowedSets(tableFamily[family], [], prefix).map(([name]) => [name, `${key} . A`] as const),
    ),
    ...keyedSets.map(
      ([name, key, more = '']) => [name, `A . inet_proto . inet_service${key}${more && ` ${more}`}`] as const,
    ),
    ...keyedSets.map(
      ([name, key, more = '']) => [`whole-${name}`, `A . inet_proto${key}${more && ` ${more}`}`] as const,
    ),
    ['addresses', 'A'],
    ['hairpin', 'A . A'],
  ])

export interface RuleSettings {
  readonly tableName: string
  readonly masqueradeBit: number
}

/** The whole table as text for `nft -f`. It takes the place of what was there in one step. */
export function tableText(place: Place, elements: Iterable<Element>, settings: RuleSettings): string {
  const { family } = place
  const table = `${tableFamily[family]} ${settings.tableName}`
  const bySet = new Map<string, string[]>()
  for (const element of elements) {
    const texts = bySet.get(element.set)
    if (texts) texts.push(elementText(element))
    else bySet.set(element.set, [elementText(element)])
  }
  const address = family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr'
  const lines = [`table ${table}`, `delete table ${table}`, `table ${table} {`]
  for (const [name, type] of setsIn(family)) {
    const texts = bySet.get(name) ?? []
    lines.push(`  ${type.includes(' : ') ? 'map' : 'set'} ${name} {`)
    lines.push(`    type ${type.replaceAll('A', address)}`)
    if (texts.length > 0) lines.push(`    elements = { ${texts.join(',\n      ')} }`)
    lines.push('  }')
  }
  for (const [name, rules] of chains(place, settings)) {
    lines.push(`  chain ${name} {`, ...rules.map((rule) => `    ${rule}`), '  }')
  }
  return `${lines.join('\n')}\n}\n`
}

/** Adds and removes elements in one step. */
export function changeText(
  family: Family,
  tableName: string,
  add: readonly Element[],
  remove: readonly Element[],
): string {
  const lines = (verb: string, elements: readonly Element[]) =>
    elements.map(
      (element) => `${verb} element ${tableFamily[family]} ${tableName} ${element.set} { ${elementText(element)} }\n`,
    )
  return [...lines('delete', remove), ...lines('add', add)].join('')
}

const elementText = ({ key, value }: Element): string => (value === undefined ? key : `${key} : ${value}`)

type Chain = readonly [name: string, rules: readonly string[]]

function chains(place: Place, { masqueradeBit }: RuleSettings): Chain[] {
  const ip = tableFamily[place.family]
  const server = `${ip} daddr . meta l4proto . th dport`
  const whole = `${ip} daddr . meta l4proto`
  const bit = hex(2 ** masqueradeBit)
  const outOfRange = place.serviceRanges.map((range) => `${ip} daddr ${range} ct state new`)
  const masquerade = 'masquerade fully-random'
  const refuseOthers = 'meta l4proto { tcp, udp, sctp } ct state new goto refuse'
  return [
    ['refuse', ['meta l4proto tcp reject with tcp reset', 'reject']],
    ...arrivalChains(place, server, '', bit),
    ...arrivalChains(place, whole, 'whole-', bit),
    ['other-ports', [`${whole} @whole-servers goto whole-from-network`, refuseOthers]],
    ['other-ports-from-node', [`${whole} @whole-servers goto whole-from-node`, refuseOthers]],
    [
      'input',
      [
        'type filter hook input priority 97; policy accept;',
        `${server} @servers goto from-network`,
        `${ip} daddr @addresses goto other-ports`,
      ],
    ],
    [
      'output',
      [
        'type filter hook output priority -99; policy accept;',
        `${server} @servers goto from-node`,
        `${ip} daddr @addresses goto other-ports-from-node`,
        // Another kpng of this node may have the address.
        ...outOfRange.map((match) => `${match} fib daddr type != local drop`),
      ],
    ],
    // The addresses of Services are the node's own. What is forwarded to their range belongs to no Service.
    ['forward', ['type filter hook forward priority 0; policy accept;', ...outOfRange.map((match) => `${match} drop`)]],
    [
      'postrouting',
      [
        'type nat hook postrouting priority 100; policy accept;',
        `meta mark & ${hex(markPrefixMask)} == ${hex(markPrefix)} goto postrouting-marked`,
        `meta mark & ${bit} == ${bit} meta mark set meta mark ^ ${bit} ${masquerade}`,
        `${ip} saddr . ${ip} daddr @hairpin ${masquerade}`,
      ],
    ],
    [
      'postrouting-marked',
      [
        `meta mark & ${hex(markMasquerade)} == ${hex(markMasquerade)} ${masquerade}`,
        // The node's own traffic: its source is the address of the Service.
        `fib saddr type local ${masquerade}`,
        `${ip} saddr . ${ip} daddr @hairpin ${masquerade}`,
      ],
    ],
    // A mark of ours means nothing to others.
    [
      'clear-marks',
      [
        'type filter hook postrouting priority 101; policy accept;',
        `meta mark & ${hex(markPrefixMask)} == ${hex(markPrefix)} meta mark set 0`,
      ],
    ],
  ]
}

/** What is decided when a packet arrives at a virtual server: who may connect, who is refused, marks. */
function arrivalChains({ family, pods }: Place, key: string, prefix: string, bit: string): Chain[] {
  const at = (name: string) => `@${prefix}${name}`
  const isPorts = prefix === ''
  const check = `ct state new ${key} ${at('restricted')} jump ${prefix}check-source`
  const fields = isPorts ? serviceKey(tableFamily[family]) : [daddr(tableFamily[family]), l4proto]
  const mark = `meta mark set meta mark | ${bit}`
  const audience = (name: 'inside' | 'outside') => [
    `ct state new ${key} vmap ${at(`refused-${name}`)}`,
    `meta mark set ${key} map ${at(`marks-${name}`)}`,
  ]
  return [
    [`${prefix}check-source`, sourceRules(tableFamily[family], fields, prefix).map(({ text }) => text)],
    [
      `${prefix}from-pods`,
      [...(isPorts ? [`ct state new ${key} ${at('masquerade-all')} ${mark}`] : []), ...audience('inside')],
    ],
    [
      `${prefix}from-network`,
      [
        check,
        ...pods.map((match) => `${match} goto ${prefix}from-pods`),
        ...(isPorts ? [`ct state new ${key} ${at('masquerade-all')} ${mark}`] : []),
        // Without a way to recognise pods, everybody might be one.
        ...(isPorts && pods.length > 0 ? [`ct state new ${key} ${at('masquerade-others')} ${mark}`] : []),
        ...audience('outside'),
      ],
    ],
    // A mark of a virtual server takes the place of the bit.
    [`${prefix}from-node`, [check, ...(isPorts ? [`ct state new ${mark}`] : []), ...audience('inside')]],
  ]
}

const hex = (number: number): string => `0x${(number >>> 0).toString(16)}`
