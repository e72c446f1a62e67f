import { defaultAffinitySeconds, type localv1 } from '@kpng/api'
import type { PortEndpoint, ServiceEndpoints } from '@kpng/client'
import { type Family, parseAddress } from './address.js'
import { endpointData, type Protocol } from './element.js'
import { maxEndpoints } from './names.js'
import { isHere, type NodeContext } from './node-context.js'

// Who answers for a port of a service, by who asks.

/** Told what of a service cannot be served, and why. The rest of it is. */
export type Complain = (problem: string) => void

/** A port of a service, in one family. */
export interface PortInFamily {
  readonly item: ServiceEndpoints
  readonly port: localv1.PortMapping
  readonly protocol: Protocol
  readonly family: Family
  readonly context: NodeContext
  readonly complain: Complain
}

export const isPort = (number: number): boolean => number > 0 && number < 65_536

/** What all frontends of a port have in common. */
export interface Answers {
  readonly family: Family
  readonly protocol: Protocol
  /** externalTrafficPolicy is Local. */
  readonly local: boolean
  /** Endpoint data, by who asks. */
  readonly internal: readonly string[]
  readonly cluster: readonly string[]
  /** Only under policy Local; else those of `cluster` are for everybody. */
  readonly external: readonly string[]
  readonly here: readonly string[]
  readonly servedSomewhere: boolean
  readonly affinitySeconds: number | undefined
}

export function answersOf(of: PortInFamily, serving: readonly PortEndpoint[]): Answers {
  const { family, protocol, context } = of
  const { service } = of.item
  const internal: string[] = []
  const cluster: string[] = []
  const external: string[] = []
  const here: string[] = []
  for (const { endpoint, port: number, scopes } of serving) {
    for (const text of (family === 'ip' ? endpoint.ips?.v4 : endpoint.ips?.v6) ?? []) {
      const address = parseAddress(text)
      if (address?.family !== family || !isPort(number)) continue
      const data = endpointData(address.bytes, number)
      if (scopes?.internal) internal.push(data)
      if (scopes?.cluster) cluster.push(data)
      if (scopes?.external) external.push(data)
      if (endpoint.local || isHere(context, address.bytes)) here.push(address.bytes)
    }
  }
  if (serving.length > maxEndpoints) {
    of.complain(`port "${of.port.name}" has ${serving.length} endpoints; the first ${maxEndpoints} are used`)
  }
  const local = service.externalTrafficToLocal
  const available = of.port.hasEndpoints && (family === 'ip' ? of.port.hasEndpoints.v4 : of.port.hasEndpoints.v6)
  return {
    family,
    protocol,
    local,
    internal: internal.slice(0, maxEndpoints),
    // A server that does not know the cluster scope says "external" for all askers from outside the cluster IPs.
    // One that does never has an empty cluster set beside an external one that is not.
    cluster: (cluster.length > 0 ? cluster : external).slice(0, maxEndpoints),
    external: local ? external.slice(0, maxEndpoints) : [],
    here,
    servedSomewhere: available ?? internal.length + cluster.length + external.length > 0,
    affinitySeconds: affinitySecondsOf(service, context.affinityFamilies.includes(family)),
  }
}

function affinitySecondsOf({ sessionAffinity }: localv1.Service, isPossible: boolean): number | undefined {
  if (sessionAffinity.case !== 'clientIp' || !isPossible) return undefined
  return sessionAffinity.value.timeoutSeconds > 0 ? sessionAffinity.value.timeoutSeconds : defaultAffinitySeconds
}
