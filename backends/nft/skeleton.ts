import { createHash } from 'node:crypto'
import type { Family } from './address.js'
import { drawsOf } from './draw.js'
import { type Protocol, protocols } from './element.js'
import { allListKinds, type ListKind, listKinds, listSizes, names, overName, setShapes, tableName } from './names.js'
import type { Settings } from './options.js'
import { setDefinition } from './set-definition.js'

// The rules. They are the same whatever services there are; only some options change a line. Per table:
//
//   packet from a pod, or from outside               packet from a process on this node
//        │                                                │
//   firewall-prerouting (filter, -110)                firewall-output (filter, -110)
//        │  source ranges are about the address           │  before DNAT, because they name the load-balancer IP that the
//        │                                                │  client used, and that is lost afterwards
//   dnat-prerouting (nat, -100) ── services ──────── dnat-output (nat, -100)
//        │  the choice of an endpoint; nat chains see only the first packet of a connection, conntrack does the rest
//        ├─────────────── routing ────────────────┐       │
//   filter-forward (filter, 0)              filter-input  filter-output (filter, 0)
//        │  what is still addressed to a service found no endpoint: refused or dropped. After DNAT, because only then is it
//        │  known; in input as well, because node ports and external IPs may be addresses of this node
//        │                                        │       │
//        │                             remember-input     │   (filter, 10) endpoints in the host's own network end here
//   remember-postrouting (filter, 50): session affinity remembers the endpoint that was chosen, once nothing can refuse it
//   snat-postrouting (nat, 100): masquerade what is marked, and hairpins
//
// No rule names a service. No map but the sticky ones holds a verdict: see draw.ts for why.

/** Service key and node-port key as expressions. */
export const keyExpressions = (family: Family) => ({
  service: `${family} daddr . meta l4proto . th dport`,
  nodePort: 'meta l4proto . th dport',
})

const loopback: Readonly<Record<Family, string>> = { ip: '127.0.0.0/8', ip6: '::1' }

/** One chain: its name, its hook where it has one, its rules. */
export interface Chain {
  readonly name: string
  readonly hook?: string
  readonly rules: readonly string[]
}

/** The packets that come from a pod, as the start of a rule; the second is for all others. */
function podMatch(family: Family, { detectLocal }: Settings): { isPod: string; isNoPod: string } {
  switch (detectLocal.mode) {
    case 'BridgeInterface':
      return { isPod: `iifname "${detectLocal.name}"`, isNoPod: `iifname != "${detectLocal.name}" ` }
    case 'InterfaceNamePrefix':
      return { isPod: `iifname "${detectLocal.prefix}*"`, isNoPod: `iifname != "${detectLocal.prefix}*" ` }
    default:
      return { isPod: `${family} saddr @${names.pods}`, isNoPod: `${family} saddr != @${names.unmasqueraded} ` }
  }
}

function dispatchChains(family: Family, settings: Settings): Chain[] {
  const { service, nodePort } = keyExpressions(family)
  const { isPod, isNoPod } = podMatch(family, settings)
  const bit = `0x${(2 ** settings.masqueradeBit).toString(16)}`
  const mark = `meta mark set meta mark | ${bit}`
  // Under policy Local, pods and the node itself reach every endpoint, as if their packets went out to the load balancer and
  // came back. The node's own packets may have the load balancer's address as their source: those are masqueraded.
  const byWhoAsks = (kind: ListKind, localKind: ListKind) => [
    `${isPod} goto ${drawChain(kind)}`,
    `fib saddr type local ${mark} goto ${drawChain(kind)}`,
    `goto ${drawChain(localKind)}`,
  ]
  return [
    {
      name: 'services',
      rules: [
        `${family} daddr @${names.clusterIps} goto to-cluster-ip`,
        `${service} @${names.externalServices} ${mark} goto ${drawChain(listKinds.services)}`,
        `${service} @${names.localServices} goto to-local-service`,
        `fib daddr type local ${family} daddr @${names.nodePortAddresses} ${family} daddr != ${loopback[family]} goto to-node-port`,
      ],
    },
    {
      name: 'to-cluster-ip',
      rules: [`${settings.masqueradeAll ? '' : isNoPod}${mark}`, `goto ${drawChain(listKinds.services)}`],
    },
    { name: 'to-local-service', rules: byWhoAsks(listKinds.services, listKinds.localServices) },
    {
      name: 'to-node-port',
      rules: [
        `${nodePort} @${names.externalNodePorts} ${mark} goto ${drawChain(listKinds.nodePorts)}`,
        `${nodePort} @${names.localNodePorts} goto to-local-node-port`,
      ],
    },
    { name: 'to-local-node-port', rules: byWhoAsks(listKinds.nodePorts, listKinds.localNodePorts) },
  ]
}

/** The chain that draws from the lists of one kind, for lists of up to `size`. */
export const drawChain = (kind: ListKind, size = listSizes[0] as number): string => `draw-${kind.name}${size}`

function drawChains(family: Family, kind: ListKind): Chain[] {
  const { service, nodePort } = keyExpressions(family)
  const key = kind.key.length === 2 ? nodePort : service
  return listSizes.map((size, index) => {
    const larger = listSizes[index + 1]
    return {
      name: drawChain(kind, size),
      rules: [
        // A client that is remembered goes where it went; a miss goes on to the next rule.
        ...(index === 0 ? [`dnat ${family} to ${family} saddr . ${service} map @${names.affinity}`] : []),
        ...(larger === undefined ? [] : [`${key} @${overName(kind, size)} goto ${drawChain(kind, larger)}`]),
        ...drawsOf(size).map((below) => `dnat ${family} to ${key} . numgen random mod ${below} map @${kind.endpoints}`),
      ],
    }
  })
}

function filterChains(family: Family): Chain[] {
  const { service, nodePort } = keyExpressions(family)
  const firewall = `ct state new ${service} @${names.firewalled} ${service} . ${family} saddr != @${names.allowed} drop`
  return [
    {
      name: 'no-endpoints',
      rules: [`${service} @${names.dropped} drop`, `${service} @${names.rejected} goto refuse`],
    },
    {
      name: 'no-node-port-endpoints',
      rules: [`${nodePort} @${names.droppedNodePorts} drop`, `${nodePort} @${names.rejectedNodePorts} goto refuse`],
    },
    {
      name: 'no-such-service',
      rules: [`${family} daddr @${names.clusterIps} goto refuse`, `${family} daddr @${names.serviceCidrs} drop`],
    },
    // A reset needs no luck with ICMP rate limits.
    { name: 'refuse', rules: ['meta l4proto tcp reject with tcp reset', 'reject'] },
    { name: 'firewall-prerouting', hook: 'type filter hook prerouting priority -110', rules: [firewall] },
    { name: 'firewall-output', hook: 'type filter hook output priority -110', rules: [firewall] },
    {
      name: 'filter-input',
      hook: 'type filter hook input priority 0',
      rules: [
        'ct state new jump no-endpoints',
        `ct state new fib daddr type local ${family} daddr @${names.nodePortAddresses} jump no-node-port-endpoints`,
      ],
    },
    ...['forward', 'output'].map((hook) => ({
      name: `filter-${hook}`,
      hook: `type filter hook ${hook} priority 0`,
      rules: ['ct state new jump no-endpoints', 'ct state new jump no-such-service'],
    })),
  ]
}

function natChains(family: Family, settings: Settings): Chain[] {
  const bit = `0x${(2 ** settings.masqueradeBit).toString(16)}`
  return [
    { name: 'dnat-prerouting', hook: 'type nat hook prerouting priority -100', rules: ['jump services'] },
    { name: 'dnat-output', hook: 'type nat hook output priority -100', rules: ['jump services'] },
    {
      name: 'snat-postrouting',
      hook: 'type nat hook postrouting priority 100',
      rules: [
        `meta mark & ${bit} == ${bit} meta mark set meta mark ^ ${bit} masquerade fully-random`,
        `ct status dnat ${family} saddr . ${family} daddr @${names.hairpin} masquerade fully-random`,
      ],
    },
  ]
}

function rememberChains(family: Family): Chain[] {
  const original = `ct original ${family} daddr`
  // The port in conntrack's tuple has a meaning only once the protocol is known, hence a rule for each.
  const rules = protocols.flatMap((protocol) => [
    `meta l4proto ${protocol} ${original} . meta l4proto . ct original proto-dst vmap @${names.sticky}`,
    `meta l4proto ${protocol} ${original} @${names.nodePortAddresses} meta l4proto . ct original proto-dst vmap @${names.stickyNodePorts}`,
  ])
  return [
    { name: 'remember', rules },
    ...(['input', 'postrouting'] as const).map((hook) => ({
      name: `remember-${hook}`,
      hook: `type filter hook ${hook} priority ${hook === 'input' ? 10 : 50}`,
      rules: ['ct state new ct status dnat jump remember'],
    })),
  ]
}

/** The rule that remembers, for so many seconds, which endpoint a client was given. */
export const rememberRule = (family: Family, protocol: Protocol, seconds: number): string =>
  `meta l4proto ${protocol} update @${names.affinity} { ct original ${family} saddr . ct original ${family} daddr . meta l4proto . ct original proto-dst timeout ${seconds}s : ${family} daddr . ${protocol} dport }`

/** All chains of a table, each after those it goes to. */
export const chainsOf = (family: Family, settings: Settings): Chain[] => [
  ...allListKinds.flatMap((kind) => drawChains(family, kind).reverse()),
  ...dispatchChains(family, settings).reverse(),
  ...rememberChains(family),
  ...filterChains(family).sort((a, b) => Number(a.name !== 'refuse') - Number(b.name !== 'refuse')),
  ...natChains(family, settings),
]

const chainText = ({ name, hook, rules }: Chain): string =>
  [
    `  chain ${name} {`,
    ...(hook ? [`    ${hook}; policy accept;`] : []),
    ...rules.map((rule) => `    ${rule}`),
    '  }',
  ].join('\n')

/** The table without its elements, as `nft -f` reads it. */
export function skeletonText(family: Family, settings: Settings): string {
  const sets = [...setShapes].map(([name, shape]) => setDefinition(family, name, shape))
  const chains = chainsOf(family, settings).map(chainText)
  const marker = `  set ${skeletonVersion(family, settings)} { type mark; }`
  return `table ${family} ${tableName} {\n${[...sets, marker, ...chains].join('\n')}\n}\n`
}

/**
 * A set of this name in the table says that its rules are these very ones. Any other version, older or newer, or with other
 * options, is replaced as a whole.
 */
export function skeletonVersion(family: Family, settings: Settings): string {
  const sets = [...setShapes].map(([name, shape]) => setDefinition(family, name, shape))
  const text = [...sets, ...chainsOf(family, settings).map(chainText)].join('\n')
  return `skeleton-${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
}
