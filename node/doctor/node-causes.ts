import type { Family, Finding } from '@kpng/api'
import { type Read, runChecks } from './finding.js'
import { trafficChecks } from './node-checks.js'
import type { TrafficFacts } from './node-facts.js'

/** Connections to endpoints, as far as this node matters to them. */
export interface Traffic {
  /** Of the Service's addresses. */
  readonly families: readonly Family[]
  /** Whether the kernel forwards the packets. False: they are the node's own, or a process carries the bytes. */
  readonly isForwarded: boolean
  /** Whether some endpoint is on another node. */
  readonly leavesNode: boolean
}

const forwardingOf: Readonly<Record<Family, string>> = {
  IPv4: 'net.ipv4.ip_forward',
  IPv6: 'net.ipv6.conf.all.forwarding',
}

/** What on this node stops such connections, or may: the doctor's findings that concern them. */
export function nodeCauses(traffic: Traffic, facts: Read<TrafficFacts>): Finding[] {
  return runChecks('', trafficChecks, factsFor(traffic, facts)).findings.map(({ check: _, ...finding }) => ({
    ...finding,
    // What only a cluster with IPv6 needs is a note of the doctor. Here, somebody asks about an IPv6 address.
    level: finding.level === 'warning' ? 'warning' : 'problem',
  }))
}

/** The facts without those that do not matter. */
function factsFor({ families, isForwarded, leavesNode }: Traffic, facts: Read<TrafficFacts>): Read<TrafficFacts> {
  const { sysctls, strictInterfaces } = facts
  const unused = (Object.keys(forwardingOf) as Family[]).filter((family) => !isForwarded || !families.includes(family))
  const names = new Set(unused.map((family) => forwardingOf[family]))
  return {
    ...facts,
    sysctls:
      'value' in sysctls
        ? { value: Object.fromEntries(Object.entries(sysctls.value).filter(([name]) => !names.has(name))) }
        : sysctls,
    // Replies of pods on this node come from where they are expected. The kernel checks IPv4 only.
    strictInterfaces: leavesNode && families.includes('IPv4') ? strictInterfaces : { value: [] },
  }
}
