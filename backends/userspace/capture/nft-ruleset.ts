import { type Cidr, type Family, parseCidrs } from '@kpng/api'
import {
  accept,
  addressBytes,
  allowedElements,
  allowedSets,
  type Chain,
  daddr,
  dnatToPort,
  type Elements,
  type FieldKind,
  goto,
  gotoVerdict,
  isIn,
  isLocal,
  isNotNew,
  isProtocol,
  isTranslated,
  jump,
  type Key,
  mergeRanges,
  nodePortKey,
  portAlone,
  portBytes,
  protocolBytes,
  put,
  type Ruleset,
  rangeOf,
  redirectToValue,
  reject,
  reset,
  returns,
  rule,
  type SetShape,
  type Statement,
  saddr,
  serviceKey,
  setPath,
  sourceRules,
  type TableFamily,
  tableFamilies,
  tableFamily,
  vmap,
} from '@kpng/linux/nftables'
import { type Fate, fateOf, type Portal } from '../portal.js'
import type { NodeAddresses, OpenPortal } from './capture.js'
import type { BoundIps } from './portals.js'

// The tables that steer packets to the proxy sockets, one for each family:
//
//   packet ──► filter, before NAT ──────────────────────► nat ──────────────► proxy socket ──► endpoint
//              who asks, from where?                       service address
//              not in the source ranges: drop              → proxy port
//              no endpoint anywhere: refuse; none here: drop
//
// Rules never change: services are elements of maps.

const key: readonly FieldKind[] = ['address', 'protocol', 'port']
const ofNodePort: readonly FieldKind[] = ['protocol', 'port']

const setsIn = (family: TableFamily): ReadonlyMap<string, SetShape> =>
  new Map<string, SetShape>([
    ['inside', { key: ['address'], interval: true }],
    ['node-port-addresses', { key: ['address'], interval: true }],
    ['portals', { key, data: ['port'] }],
    ['node-ports', { key: ofNodePort, data: ['port'] }],
    ['inside-fates', { key, data: 'verdict' }],
    ['outside-fates', { key, data: 'verdict' }],
    ['node-port-inside-fates', { key: ofNodePort, data: 'verdict' }],
    ['node-port-outside-fates', { key: ofNodePort, data: 'verdict' }],
    ['guarded', { key }],
    ...allowedSets(family, key),
    ['proxy-ports', { key: ofNodePort }],
  ])

/** @param boundIps where the proxy sockets of a family listen */
export const portalRuleset = (tableName: string, boundIps: Readonly<Record<TableFamily, BoundIps>>): Ruleset => ({
  tableName,
  sets: { ip: setsIn('ip'), ip6: setsIn('ip6') },
  chains: (family) => chainsOf(family, boundIps[family]),
})

function chainsOf(family: TableFamily, boundIps: BoundIps): Chain[] {
  const service = serviceKey(family)
  const isNodePort = rule(isIn([daddr(family)], 'node-port-addresses'), isLocal('daddr'))
  const ofConnection = rule(isProtocol('tcp'), isNotNew, accept)
  const steer = (protocol: Portal['protocol'], onAllAddresses: (to: Key, map: string) => Statement): Statement[] => {
    const ip = boundIps[protocol]
    const to = (by: Key, map: string) => (ip === undefined ? onAllAddresses(by, map) : dnatToPort(family, ip, by, map))
    return [
      rule(isProtocol(protocol), to(service, 'portals')),
      rule(isNodePort, isProtocol(protocol), to(nodePortKey, 'node-ports')),
    ]
  }
  // A redirect of the node's own packets goes to loopback, but a UDP answer to an address of the node leaves from that very
  // address, and conntrack would not know it. So these packets are sent to where they came from.
  const toSelf = (by: Key, map: string) => dnatToPort(family, saddr(family), by, map)
  const hook = (type: 'filter' | 'nat', name: 'prerouting' | 'output' | 'input', priority: number) => ({
    hook: { type, name, priority },
  })
  return [
    { name: 'refuse', rules: [rule(isProtocol('tcp'), reset), reject(family)] },
    { name: 'check-source', rules: [rule(isLocal('saddr'), returns), ...sourceRules(family, service)] },
    ...(['inside', 'outside'] as const).map((side) => ({
      name: `from-${side}`,
      rules: [vmap(service, `${side}-fates`), rule(isNodePort, vmap(nodePortKey, `node-port-${side}-fates`))],
    })),
    {
      name: 'filter-prerouting',
      ...hook('filter', 'prerouting', -110),
      rules: [
        ofConnection,
        rule(isIn(service, 'guarded'), jump('check-source')),
        rule(isIn([saddr(family)], 'inside'), goto('from-inside')),
        rule(isLocal('saddr'), goto('from-inside')),
        goto('from-outside'),
      ],
    },
    { name: 'filter-output', ...hook('filter', 'output', -110), rules: [ofConnection, goto('from-inside')] },
    {
      name: 'filter-input',
      ...hook('filter', 'input', 0),
      rules: [rule(isTranslated, accept), rule(isIn(nodePortKey, 'proxy-ports'), goto('refuse'))],
    },
    {
      name: 'nat-prerouting',
      ...hook('nat', 'prerouting', -100),
      rules: [...steer('tcp', redirectToValue), ...steer('udp', redirectToValue)],
    },
    {
      name: 'nat-output',
      ...hook('nat', 'output', -100),
      rules: [...steer('tcp', redirectToValue), ...steer('udp', toSelf)],
    },
  ]
}

const verdicts: Record<Exclude<Fate, 'forward'>, string> = { refuse: gotoVerdict('refuse'), drop: 'drop' }

/** What open portals stand for in the tables. */
export function portalElements(portals: Iterable<OpenPortal>): Elements {
  const elements: Elements = new Map()
  for (const open of portals) putPortal(elements, open)
  return elements
}

function putPortal(elements: Elements, { portal, place }: OpenPortal): void {
  const { kind, protocol, address, port, allowedSources } = portal
  const family = tableFamily[portal.family]
  const add = (set: string, own: string, data?: string) => put(elements, setPath(family, set), own, data)
  const isNodePort = kind === 'nodePort'
  const own = `${isNodePort ? '' : addressBytes(address)}${protocolBytes(protocol)}${portBytes(port)}`
  add(isNodePort ? 'node-ports' : 'portals', own, portAlone(place.port))
  add('proxy-ports', protocolBytes(protocol) + portBytes(place.port))
  for (const side of ['inside', 'outside'] as const) {
    const fate = fateOf(portal[side])
    if (fate !== 'forward') add(`${isNodePort ? 'node-port-' : ''}${side}-fates`, own, verdicts[fate])
  }
  const allowed = allowedSources && allowedElements(family, own, allowedSources)
  if (!allowed) return
  add('guarded', own)
  for (const [set, source] of allowed) add(set, source)
}

/** What the node stands for. */
export function nodeElements({ insideCidrs, nodePortCidrs }: NodeAddresses): Elements {
  const elements: Elements = new Map()
  const putRanges = (family: Family, set: string, cidrs: readonly Cidr[]) => {
    const ranges = mergeRanges(cidrs.filter((cidr) => cidr.family === family).map(rangeOf))
    for (const { first, last } of ranges) put(elements, setPath(tableFamily[family], set), first + last)
  }
  for (const family of ['IPv4', 'IPv6'] as const) {
    putRanges(family, 'inside', parseCidrs(insideCidrs))
    putRanges(family, 'node-port-addresses', parseCidrs(nodePortCidrs[family]))
  }
  return elements
}

/** Those of some families. */
export const elementsIn = (elements: Elements, families: readonly TableFamily[]): Elements =>
  families.length === tableFamilies.length
    ? elements
    : new Map([...elements].filter(([path]) => families.some((family) => path.startsWith(`${family} `))))
