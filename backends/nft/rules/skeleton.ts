import type { DetectLocal } from '@kpng/dataplane'
import {
  type Chain,
  daddr,
  dnatToValue,
  dport,
  drop,
  goto,
  type Hook,
  hasMark,
  isIn,
  isInterface,
  isInvalid,
  isLocal,
  isNoInterface,
  isNoLoopback,
  isNotIn,
  isProtocol,
  isTranslated,
  jump,
  type Key,
  l4proto,
  masquerade,
  nodePortKey,
  originalDaddr,
  originalPort,
  originalSaddr,
  protocols,
  type Ruleset,
  random,
  reject,
  removeMark,
  reset,
  rule,
  type Statement,
  saddr,
  serviceKey,
  setMark,
  sourceRules,
  type TableFamily,
  updateMap,
  vmap,
} from '@kpng/linux/nftables'
import { drawsOf } from './draw.js'
import { allListKinds, type ListKind, listKinds, names, overName, rememberedSeconds, setsIn } from './names.js'

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

/** What the rules depend on. */
export interface RuleSettings {
  readonly tableName: string
  readonly masqueradeAll: boolean
  readonly masqueradeBit: number
  readonly detectLocal: DetectLocal
  readonly counters: boolean
  readonly dropInvalid: boolean
}

/** The packets that come from a pod, and all others. */
function podMatch(family: TableFamily, { detectLocal }: RuleSettings): { isPod: Statement; isNoPod: Statement } {
  switch (detectLocal.mode) {
    case 'BridgeInterface':
      return { isPod: isInterface(detectLocal.name), isNoPod: isNoInterface(detectLocal.name) }
    case 'InterfaceNamePrefix':
      return { isPod: isInterface(`${detectLocal.prefix}*`), isNoPod: isNoInterface(`${detectLocal.prefix}*`) }
    default:
      return { isPod: isIn([saddr(family)], names.pods), isNoPod: isNotIn([saddr(family)], names.unmasqueraded) }
  }
}

const markOf = ({ masqueradeBit }: RuleSettings): number => 2 ** masqueradeBit

/** What the lists of a kind are found by. */
const keyOf = (family: TableFamily, { key }: ListKind): Key =>
  key.length === 1 ? [daddr(family)] : key.length === 2 ? nodePortKey : serviceKey(family)

function dispatchChains(family: TableFamily, settings: RuleSettings): Chain[] {
  const service = serviceKey(family)
  const address = [daddr(family)]
  const { isPod, isNoPod } = podMatch(family, settings)
  const mark = setMark(markOf(settings))
  const markOthers = settings.masqueradeAll ? mark : rule(isNoPod, mark)
  const firewall = rule(isIn(service, names.firewalled), jump(checkSource))
  // Every packet for a Service passes exactly one of these chains, after the source ranges. So connections are counted here.
  const count = (kind: ListKind) =>
    isIn(keyOf(family, kind), kind.key.length === 2 ? names.countedNodePorts : names.counted)
  const orNone = (kind: ListKind) => [
    ...(settings.counters && kind.key.length > 1 ? [count(kind)] : []),
    jump(drawChain(kind)),
    goto(noneChain(kind)),
  ]
  // Under policy Local, pods and the node itself reach every endpoint, as if their packets went out to the load balancer and
  // came back. The node's own packets may have the load balancer's address as their source: those are masqueraded.
  const byWhoAsks = (all: string, localKind: ListKind) => [
    rule(isPod, goto(all)),
    rule(isLocal('saddr'), mark, goto(all)),
    ...orNone(localKind),
  ]
  return [
    {
      name: 'services',
      rules: [
        rule(isIn(address, names.clusterIps), goto('to-cluster-ip')),
        rule(isIn(service, names.externalServices), goto('to-external-service')),
        rule(isIn(service, names.localServices), goto('to-local-service')),
        rule(isIn(address, names.wholeClusterIps), goto('to-whole-cluster-ip')),
        rule(isIn(address, names.externalAddresses), goto('to-external-address')),
        rule(isIn(address, names.localAddresses), goto('to-local-address')),
        rule(isLocal('daddr'), isIn(address, names.nodePortAddresses), isNoLoopback(family), goto('to-node-port')),
      ],
    },
    { name: 'to-cluster-ip', rules: [markOthers, goto('to-all')] },
    { name: 'to-external-service', rules: [firewall, mark, goto('to-all')] },
    { name: 'to-local-service', rules: [firewall, ...byWhoAsks('to-all', listKinds.localServices)] },
    { name: 'to-all', rules: orNone(listKinds.services) },
    { name: 'to-whole-cluster-ip', rules: [markOthers, goto('to-all-of-address')] },
    { name: 'to-external-address', rules: [mark, goto('to-all-of-address')] },
    { name: 'to-local-address', rules: byWhoAsks('to-all-of-address', listKinds.localAddresses) },
    { name: 'to-all-of-address', rules: orNone(listKinds.addresses) },
    {
      name: 'to-node-port',
      rules: [
        rule(isIn(nodePortKey, names.externalNodePorts), mark, goto('to-all-of-node-port')),
        rule(isIn(nodePortKey, names.localNodePorts), goto('to-local-node-port')),
      ],
    },
    { name: 'to-local-node-port', rules: byWhoAsks('to-all-of-node-port', listKinds.localNodePorts) },
    { name: 'to-all-of-node-port', rules: orNone(listKinds.nodePorts) },
    { name: noneChain(listKinds.services), rules: [rule(isIn(service, names.dropped), drop), goto('refuse')] },
    {
      name: noneChain(listKinds.nodePorts),
      rules: [rule(isIn(nodePortKey, names.droppedNodePorts), drop), goto('refuse')],
    },
    {
      name: noneChain(listKinds.addresses),
      rules: [rule(isIn(address, names.droppedAddresses), drop), goto('refuse')],
    },
    { name: checkSource, rules: sourceRules(family, service) },
    // Unlike ICMP errors, resets are not rate-limited.
    { name: 'refuse', rules: [rule(isProtocol('tcp'), reset), reject(family)] },
  ]
}

const checkSource = 'check-source'

/** The chain for packets that drew no endpoint. */
const noneChain = ({ key }: ListKind): string =>
  key.length === 1 ? 'no-address-endpoint' : key.length === 2 ? 'no-node-port-endpoint' : 'no-endpoint'

/** The chain that draws from the lists of one kind, for lists of up to `size`. */
const drawChain = (kind: ListKind, size = kind.sizes[0]): string => `draw-${kind.name}${size}`

function drawChains(family: TableFamily, kind: ListKind): Chain[] {
  const key = keyOf(family, kind)
  const hasAffinity = kind.key.length > 1
  const value = kind.key.length > 1 ? 'endpoint' : 'address'
  const draw = (below: number) => dnatToValue(family, [...key, random(below)], kind.endpoints, value)
  return kind.sizes.map((size, index) => {
    const larger = kind.sizes[index + 1]
    return {
      name: drawChain(kind, size),
      rules: [
        // A remembered client gets the same endpoint again. If the client is not in the map, the next rule applies.
        ...(index === 0 && hasAffinity
          ? [dnatToValue(family, [saddr(family), ...serviceKey(family)], names.affinity)]
          : []),
        ...(larger === undefined ? [] : [rule(isIn(key, overName(kind, size)), goto(drawChain(kind, larger)))]),
        ...drawsOf(kind, size).flatMap(({ below, times }) => Array<Statement>(times).fill(draw(below))),
      ],
    }
  })
}

function baseChains(family: TableFamily, settings: RuleSettings): Chain[] {
  const mark = markOf(settings)
  const services = jump('services')
  const unallocated = rule(isIn([daddr(family)], names.serviceCidrs), drop)
  const remember = rule(isTranslated, jump('remember'))
  const toItself = isIn([saddr(family), daddr(family)], names.hairpin)
  const nat = (name: Hook['name'], priority: number): Hook => ({ type: 'nat', name, priority })
  return [
    { name: 'dnat-prerouting', hook: nat('prerouting', -100), rules: [services] },
    { name: 'dnat-output', hook: nat('output', -100), rules: [services] },
    { name: 'late-prerouting', hook: nat('prerouting', -90), rules: [unallocated] },
    { name: 'late-output', hook: nat('output', -90), rules: [unallocated] },
    { name: 'snat-input', hook: nat('input', 100), rules: [remember] },
    { name: 'remember-postrouting', hook: nat('postrouting', 90), rules: [remember] },
    {
      name: 'snat-postrouting',
      hook: nat('postrouting', 100),
      rules: [rule(hasMark(mark), removeMark(mark), masquerade), rule(isTranslated, toItself, masquerade)],
    },
    ...(settings.dropInvalid
      ? [
          {
            name: 'filter-forward',
            hook: { type: 'filter', name: 'forward', priority: 0 } as const,
            rules: [rule(isProtocol('tcp'), isInvalid, drop)],
          },
        ]
      : []),
  ]
}

function rememberChain(family: TableFamily): Chain {
  const address = originalDaddr(family)
  const port = [l4proto, originalPort]
  // The port in conntrack's tuple is valid only if the protocol is known, so there is one rule per protocol.
  const rules = protocols.flatMap((protocol) => [
    rule(isProtocol(protocol), vmap([address, ...port], names.sticky)),
    rule(isProtocol(protocol), isIn([address], names.nodePortAddresses), vmap(port, names.stickyNodePorts)),
  ])
  return { name: 'remember', rules }
}

/** The rules of a chain that records for some seconds which endpoint a client got. */
export const rememberRules = (family: TableFamily, seconds: number): Statement[] =>
  protocols.map((protocol) => {
    const client = [originalSaddr(family), originalDaddr(family), l4proto, originalPort]
    const endpoint = [daddr(family), dport(protocol)]
    return rule(isProtocol(protocol), updateMap(names.affinity, client, endpoint, seconds))
  })

/** All chains of a table, each after those it goes to. */
export const chainsOf = (family: TableFamily, settings: RuleSettings): Chain[] => [
  ...allListKinds.flatMap((kind) => drawChains(family, kind).reverse()),
  ...dispatchChains(family, settings).reverse(),
  rememberChain(family),
  ...baseChains(family, settings),
]

/** Our tables without elements. */
export const nftRuleset = (settings: RuleSettings): Ruleset => ({
  tableName: settings.tableName,
  sets: { ip: setsIn('ip', settings), ip6: setsIn('ip6', settings) },
  chains: (family) => chainsOf(family, settings),
  extraChain(family, name) {
    const seconds = rememberedSeconds(name)
    return seconds === undefined ? undefined : rememberRules(family, seconds)
  },
})
