import { createHash } from 'node:crypto'
import type { Protocol } from '@kpng/client'
import type { DetectLocal } from '@kpng/dataplane'
import { drawsOf } from './draw.js'
import type { TableFamily } from './family.js'
import { allListKinds, allowedName, type ListKind, listKinds, names, overName, shapesIn, shapesWith } from './names.js'
import { setDefinition } from './set-definition.js'
import { blockLengths, maskText } from './source-lengths.js'

// The rules. They are the same whatever services there are; only some options change a line. Per table:
//
//   packet from a pod, or from outside          packet from a process on this node
//        │                                           │
//   dnat-prerouting (nat, -100) ─── services ─── dnat-output (nat, -100)
//        │    │ to-cluster-ip         cluster IPs; other ports of them are refused
//        │    │ to-external-service   external and load-balancer IPs, policy Cluster
//        │    │ to-local-service      the same, policy Local: who asks decides
//        │    │ to-…-address          Services that have a whole address
//        │    │ to-node-port          node ports
//        │    └─► draw-…              an endpoint, or none: then refused or dropped, here and at once
//   late-prerouting (nat, -90) ── late-output    addresses in the service range that no Service has are dropped
//        ├──────── routing ───────┐          │
//        │                   snat-input (nat, 100): endpoints in the host's own network end here
//        │                                   │
//   remember-postrouting (nat, 90): session affinity remembers the endpoint that was chosen
//   snat-postrouting (nat, 100): marked packets and hairpins are masqueraded
//
//   filter-forward (filter, 0): drops what conntrack considers invalid
//
// All hooks except the last are nat hooks, because those see only the first packet of a connection. Later packets cost nothing in
// our tables: conntrack repeats the decision for them.
//   - For the same reason, source ranges, refusing and dropping are in these hooks and not in filter hooks. They come before the
//     DNAT because they depend on the address that the client used.
//   - Affinity is recorded after routing and filtering, when no rule can refuse the packet any more.
//   - A packet that conntrack considers invalid (for example outside the TCP window) is not translated back. A client that gets one from
//     an endpoint's own address resets the connection, so such packets are dropped, as in kube-proxy's iptables mode.
//   - Another kpng may have its own tables, for Services with its service-proxy-name. The first nat chain of a hook that translates
//     a packet ends that hook for the packet. So rules that concern packets of all proxies have a separate priority: an address
//     without a Service is dropped after all tables had their turn, and affinity is recorded before any table masquerades.
// A packet is refused in prerouting, which kernels support since 5.9.
//
// No rule names a Service. Only the maps of session affinity contain verdicts: draw.ts says why.

/** Service key and node-port key as expressions. */
export const keyExpressions = (family: TableFamily) => ({
  service: `${family} daddr . meta l4proto . th dport`,
  nodePort: 'meta l4proto . th dport',
})

const loopback: Readonly<Record<TableFamily, string>> = { ip: '127.0.0.0/8', ip6: '::1' }

/** What the rules depend on. */
export interface RuleSettings {
  readonly tableName: string
  readonly masqueradeAll: boolean
  readonly masqueradeBit: number
  readonly detectLocal: DetectLocal
  readonly counters: boolean
  readonly dropInvalid: boolean
}

const protocols: readonly Protocol[] = ['tcp', 'udp', 'sctp']

/** One chain: its name, its hook where it has one, its rules. */
export interface Chain {
  readonly name: string
  readonly hook?: string
  readonly rules: readonly string[]
}

/** The packets that come from a pod, as the start of a rule; the second is for all others. */
function podMatch(family: TableFamily, { detectLocal }: RuleSettings): { isPod: string; isNoPod: string } {
  switch (detectLocal.mode) {
    case 'BridgeInterface':
      return { isPod: `iifname "${detectLocal.name}"`, isNoPod: `iifname != "${detectLocal.name}" ` }
    case 'InterfaceNamePrefix':
      return { isPod: `iifname "${detectLocal.prefix}*"`, isNoPod: `iifname != "${detectLocal.prefix}*" ` }
    default:
      return { isPod: `${family} saddr @${names.pods}`, isNoPod: `${family} saddr != @${names.unmasqueraded} ` }
  }
}

const markText = ({ masqueradeBit }: RuleSettings): string => `0x${(2 ** masqueradeBit).toString(16)}`

function dispatchChains(family: TableFamily, settings: RuleSettings): Chain[] {
  const { service, nodePort } = keyExpressions(family)
  const { isPod, isNoPod } = podMatch(family, settings)
  const mark = `meta mark set meta mark | ${markText(settings)}`
  const firewall = `${service} @${names.firewalled} jump ${checkSource}`
  // Every packet for a Service passes exactly one of these chains, after the source ranges. So connections are counted here.
  const count = ({ key }: ListKind) =>
    key.length === 2 ? `${nodePort} @${names.countedNodePorts}` : `${service} @${names.counted}`
  const orNone = (kind: ListKind) => [
    ...(settings.counters && kind.key.length > 1 ? [count(kind)] : []),
    `jump ${drawChain(kind)}`,
    `goto ${noneChain(kind)}`,
  ]
  // Under policy Local, pods and the node itself reach every endpoint, as if their packets went out to the load balancer and
  // came back. The node's own packets may have the load balancer's address as their source: those are masqueraded.
  const byWhoAsks = (all: string, localKind: ListKind) => [
    `${isPod} goto ${all}`,
    `fib saddr type local ${mark} goto ${all}`,
    ...orNone(localKind),
  ]
  return [
    {
      name: 'services',
      rules: [
        `${family} daddr @${names.clusterIps} goto to-cluster-ip`,
        `${service} @${names.externalServices} goto to-external-service`,
        `${service} @${names.localServices} goto to-local-service`,
        `${family} daddr @${names.wholeClusterIps} goto to-whole-cluster-ip`,
        `${family} daddr @${names.externalAddresses} goto to-external-address`,
        `${family} daddr @${names.localAddresses} goto to-local-address`,
        `fib daddr type local ${family} daddr @${names.nodePortAddresses} ${family} daddr != ${loopback[family]} goto to-node-port`,
      ],
    },
    {
      name: 'to-cluster-ip',
      rules: [`${settings.masqueradeAll ? '' : isNoPod}${mark}`, 'goto to-all'],
    },
    { name: 'to-external-service', rules: [firewall, mark, 'goto to-all'] },
    { name: 'to-local-service', rules: [firewall, ...byWhoAsks('to-all', listKinds.localServices)] },
    { name: 'to-all', rules: orNone(listKinds.services) },
    {
      name: 'to-whole-cluster-ip',
      rules: [`${settings.masqueradeAll ? '' : isNoPod}${mark}`, 'goto to-all-of-address'],
    },
    { name: 'to-external-address', rules: [mark, 'goto to-all-of-address'] },
    { name: 'to-local-address', rules: byWhoAsks('to-all-of-address', listKinds.localAddresses) },
    { name: 'to-all-of-address', rules: orNone(listKinds.addresses) },
    {
      name: 'to-node-port',
      rules: [
        `${nodePort} @${names.externalNodePorts} ${mark} goto to-all-of-node-port`,
        `${nodePort} @${names.localNodePorts} goto to-local-node-port`,
      ],
    },
    { name: 'to-local-node-port', rules: byWhoAsks('to-all-of-node-port', listKinds.localNodePorts) },
    { name: 'to-all-of-node-port', rules: orNone(listKinds.nodePorts) },
    { name: noneChain(listKinds.services), rules: [`${service} @${names.dropped} drop`, 'goto refuse'] },
    { name: noneChain(listKinds.nodePorts), rules: [`${nodePort} @${names.droppedNodePorts} drop`, 'goto refuse'] },
    { name: noneChain(listKinds.addresses), rules: [`${family} daddr @${names.droppedAddresses} drop`, 'goto refuse'] },
    { name: checkSource, rules: sourceRules(family) },
    // Unlike ICMP errors, resets are not rate-limited.
    { name: 'refuse', rules: ['meta l4proto tcp reject with tcp reset', 'reject'] },
  ]
}

const checkSource = 'check-source'

/** Allowed sources return from this chain; all others are dropped in it. */
function sourceRules(family: TableFamily): string[] {
  const { service } = keyExpressions(family)
  const lengths = blockLengths(family)
  const source = (bits: number) =>
    bits === lengths[0] ? `${family} saddr` : `${family} saddr & ${maskText(family, bits)}`
  return [...lengths.map((bits) => `${service} . ${source(bits)} @${allowedName(bits)} return`), 'drop']
}

/** The chain for packets that drew no endpoint. */
const noneChain = ({ key }: ListKind): string =>
  key.length === 1 ? 'no-address-endpoint' : key.length === 2 ? 'no-node-port-endpoint' : 'no-endpoint'

/** The chain that draws from the lists of one kind, for lists of up to `size`. */
export const drawChain = (kind: ListKind, size = kind.sizes[0]): string => `draw-${kind.name}${size}`

function drawChains(family: TableFamily, kind: ListKind): Chain[] {
  const { service, nodePort } = keyExpressions(family)
  const key = kind.key.length === 1 ? `${family} daddr` : kind.key.length === 2 ? nodePort : service
  const hasAffinity = kind.key.length > 1
  return kind.sizes.map((size, index) => {
    const larger = kind.sizes[index + 1]
    return {
      name: drawChain(kind, size),
      rules: [
        // A remembered client gets the same endpoint again. If the client is not in the map, the next rule applies.
        ...(index === 0 && hasAffinity
          ? [`dnat ${family} to ${family} saddr . ${service} map @${names.affinity}`]
          : []),
        ...(larger === undefined ? [] : [`${key} @${overName(kind, size)} goto ${drawChain(kind, larger)}`]),
        ...drawsOf(kind, size).map(
          (below) => `dnat ${family} to ${key} . numgen random mod ${below} map @${kind.endpoints}`,
        ),
      ],
    }
  })
}

function baseChains(family: TableFamily, settings: RuleSettings): Chain[] {
  const bit = markText(settings)
  const remember = 'ct status dnat jump remember'
  const unallocated = `${family} daddr @${names.serviceCidrs} drop`
  return [
    { name: 'dnat-prerouting', hook: 'type nat hook prerouting priority -100', rules: ['jump services'] },
    { name: 'dnat-output', hook: 'type nat hook output priority -100', rules: ['jump services'] },
    { name: 'late-prerouting', hook: 'type nat hook prerouting priority -90', rules: [unallocated] },
    { name: 'late-output', hook: 'type nat hook output priority -90', rules: [unallocated] },
    { name: 'snat-input', hook: 'type nat hook input priority 100', rules: [remember] },
    { name: 'remember-postrouting', hook: 'type nat hook postrouting priority 90', rules: [remember] },
    {
      name: 'snat-postrouting',
      hook: 'type nat hook postrouting priority 100',
      rules: [
        `meta mark & ${bit} == ${bit} meta mark set meta mark ^ ${bit} masquerade fully-random`,
        `ct status dnat ${family} saddr . ${family} daddr @${names.hairpin} masquerade fully-random`,
      ],
    },
    ...(settings.dropInvalid
      ? [
          {
            name: 'filter-forward',
            hook: 'type filter hook forward priority 0',
            rules: ['meta l4proto tcp ct state invalid drop'],
          },
        ]
      : []),
  ]
}

function rememberChain(family: TableFamily): Chain {
  const original = `ct original ${family} daddr`
  // The port in conntrack's tuple is valid only if the protocol is known, so there is one rule per protocol.
  const rules = protocols.flatMap((protocol) => [
    `meta l4proto ${protocol} ${original} . meta l4proto . ct original proto-dst vmap @${names.sticky}`,
    `meta l4proto ${protocol} ${original} @${names.nodePortAddresses} meta l4proto . ct original proto-dst vmap @${names.stickyNodePorts}`,
  ])
  return { name: 'remember', rules }
}

/** The rule that records for some seconds which endpoint a client got. */
export const rememberRule = (family: TableFamily, protocol: Protocol, seconds: number): string =>
  `meta l4proto ${protocol} update @${names.affinity} { ct original ${family} saddr . ct original ${family} daddr . meta l4proto . ct original proto-dst timeout ${seconds}s : ${family} daddr . ${protocol} dport }`

/** All chains of a table, each after those it goes to. */
export const chainsOf = (family: TableFamily, settings: RuleSettings): Chain[] => [
  ...allListKinds.flatMap((kind) => drawChains(family, kind).reverse()),
  ...dispatchChains(family, settings).reverse(),
  rememberChain(family),
  ...baseChains(family, settings),
]

const chainText = ({ name, hook, rules }: Chain): string =>
  [
    `  chain ${name} {`,
    ...(hook ? [`    ${hook}; policy accept;`] : []),
    ...rules.map((rule) => `    ${rule}`),
    '  }',
  ].join('\n')

const setDefinitions = (family: TableFamily, settings: RuleSettings): string[] =>
  shapesIn(family, shapesWith(settings)).map(([name, shape]) => setDefinition(family, name, shape))

/** The table without its elements, as `nft -f` reads it. */
export function skeletonText(family: TableFamily, settings: RuleSettings): string {
  const sets = setDefinitions(family, settings)
  const chains = chainsOf(family, settings).map(chainText)
  const marker = `  set ${skeletonVersion(family, settings)} { type mark; }`
  return `table ${family} ${settings.tableName} {\n${[...sets, marker, ...chains].join('\n')}\n}\n`
}

/**
 * A set with this name marks a table with exactly these rules. A table of any other version, or with other options, is replaced as
 * a whole.
 */
export function skeletonVersion(family: TableFamily, settings: RuleSettings): string {
  const text = [...setDefinitions(family, settings), ...chainsOf(family, settings).map(chainText)].join('\n')
  return `skeleton-${createHash('sha256').update(text).digest('hex').slice(0, 12)}`
}
