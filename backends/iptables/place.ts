import type { Family } from '@kpng/api'
import type { DetectLocal, NodeFacts } from '@kpng/dataplane'
import { fromRange, ruleOf, toNode } from './rule.js'

/** What the rules of one family say about this node. */
export interface Place {
  readonly family: Family
  /** Matches of traffic from pods: one of them must match. Empty if pods cannot be told from others. */
  readonly pods: readonly string[]
  /** Where node ports are open. Empty: nowhere. */
  readonly nodePorts: readonly string[]
  /** Whether packets to node ports on loopback addresses are counted. */
  readonly countsLoopback: boolean
  /** There are more endpoints than `largeClusterEndpoints`, so the rules are as few and as short as possible. */
  readonly isLarge: boolean
}

export interface PlaceSettings {
  readonly detectLocal: DetectLocal
  /** Whether node ports answer on 127.0.0.0/8, where they are open. IPv6 cannot: ::1 is not routed. */
  readonly localhostNodePorts: boolean
  /** Whether packets are counted for metrics. */
  readonly counters: boolean
}

export function placeOf(family: Family, node: NodeFacts, settings: PlaceSettings, isLarge: boolean): Place {
  return {
    family,
    isLarge,
    countsLoopback: settings.counters && family === 'IPv4' && servesLoopback(node, settings.localhostNodePorts),
    pods: podMatches(family, node, settings.detectLocal),
    nodePorts: nodePortMatches(family, node, settings),
  }
}

export const samePlace = (a: Place, b: Place): boolean =>
  a.isLarge === b.isLarge &&
  a.countsLoopback === b.countsLoopback &&
  a.pods.join() === b.pods.join() &&
  a.nodePorts.join() === b.nodePorts.join()

function podMatches(family: Family, { pods }: NodeFacts, detectLocal: DetectLocal): string[] {
  switch (detectLocal.mode) {
    case 'BridgeInterface':
      return [`-i ${detectLocal.name}`]
    case 'InterfaceNamePrefix':
      return [`-i ${detectLocal.prefix}+`]
    default:
      return pods.cidrs.filter((cidr) => cidr.family === family).map(fromRange)
  }
}

const loopback = { IPv4: '127.0.0.0/8', IPv6: '::1/128' } as const

/** Whether node ports are open on loopback addresses: the kernel must route them then. */
export const servesLoopback = ({ nodePortCidrs: { IPv4 } }: NodeFacts, localhostNodePorts: boolean): boolean =>
  localhostNodePorts && IPv4.some(({ text, bits }) => bits === 0 || isLoopbackRange(text, 'IPv4'))

function nodePortMatches(
  family: Family,
  { nodePortCidrs }: NodeFacts,
  { localhostNodePorts }: PlaceSettings,
): string[] {
  const withLoopback = localhostNodePorts && family === 'IPv4'
  return nodePortCidrs[family].flatMap(({ text, bits }) => {
    if (bits === 0) return ruleOf(withLoopback ? '' : `! -d ${loopback[family]}`, toNode)
    return isLoopbackRange(text, family) && !withLoopback ? [] : ruleOf(`-d ${text}`, toNode)
  })
}

const isLoopbackRange = (cidr: string, family: Family): boolean =>
  family === 'IPv4' ? cidr.startsWith('127.') : cidr === loopback.IPv6
