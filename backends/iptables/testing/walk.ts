import { CidrSet, parseCidrs } from '@kpng/api'
import type { Client } from '@kpng/dataplane'
import { partsOf, type RuleParts, type Saved } from '../save.js'

/** A new connection, as the rules see it. */
export interface Packet {
  readonly client: Client & { readonly ip: string }
  readonly to: string
  readonly port: number
  readonly protocol: string
  /** The destination is an address of the node. */
  readonly isToNode: boolean
}

export interface Fate {
  readonly outcome: 'endpoint' | 'refused' | 'dropped' | 'passed'
  /** Each that may be drawn. */
  readonly endpoints: readonly string[]
}

/** Where rules lead a packet, by reading them. Random draws are followed on all ways. */
export function walk(saved: Saved, packet: Packet): Fate {
  const hook = packet.client.kind === 'node' ? 'OUTPUT' : 'PREROUTING'
  const endpoints = new Set<string>()
  const mayPass = through(saved.nat.chains, hook, packet, (rule) => rule.target === 'DNAT' && !!endpoints.add(rule.to))
  if (endpoints.size > 0) return { outcome: mayPass ? 'passed' : 'endpoint', endpoints: [...endpoints].sort() }
  let outcome: Fate['outcome'] = 'passed'
  const end = (rule: RuleParts): boolean => {
    if (rule.target === 'REJECT') outcome = 'refused'
    if (rule.target === 'DROP') outcome = 'dropped'
    return rule.target === 'REJECT' || rule.target === 'DROP'
  }
  const filters = packet.client.kind === 'node' ? ['OUTPUT', 'INPUT'] : [packet.isToNode ? 'INPUT' : 'FORWARD']
  for (const filter of filters) {
    if (filter === 'INPUT' && !packet.isToNode) continue
    if (!through(saved.filter.chains, filter, packet, end)) break
  }
  return { outcome, endpoints: [] }
}

/** Whether a packet may come out of a chain again. `end` says whether a rule is the end of its way. */
function through(
  chains: ReadonlyMap<string, readonly string[]>,
  chain: string,
  packet: Packet,
  end: (rule: RuleParts) => boolean,
): boolean {
  for (const text of chains.get(chain) ?? []) {
    const rule = partsOf(text)
    const isMaybe = text.includes('-m statistic') || text.includes('-m recent --rcheck')
    if (!matches(rule, text, packet)) continue
    if (rule.target === 'RETURN') return true
    const comesBack = chains.has(rule.target) ? through(chains, rule.target, packet, end) : !end(rule)
    if (!comesBack && !isMaybe) return false
  }
  return true
}

function matches(rule: RuleParts, text: string, { client, to, port, protocol, isToNode }: Packet): boolean {
  const has = (range: string, ip: string) => {
    if (range === '') return true
    const isNot = range.startsWith('! ')
    return new CidrSet(parseCidrs([range.replace('! ', '')])).has(ip) !== isNot
  }
  return (
    has(rule.source, client.ip) &&
    has(rule.destination, to) &&
    (rule.protocol === '' || rule.protocol === protocol) &&
    (rule.port === 0 || rule.port === port) &&
    (!rule.isFromNode || client.kind === 'node') &&
    (!rule.isToNode || isToNode) &&
    // A new connection is neither of these, and has no mark yet.
    !/--ctstate (?:INVALID|RELATED)|-m mark/.test(text)
  )
}
