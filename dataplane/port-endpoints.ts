import { type Family, ipsOf, isPort, type localv1, parseIp, type UnsafeKind, unsafeKindOf } from '@kpng/api'
import { endpointsOfPort, type PortEndpoint, type Scopes, type ServiceEndpoints, scopesOf } from '@kpng/client'
import { type Audience, endpointKey, type FrontendEndpoint } from './frontend.js'
import type { NodeFacts } from './node.js'

/** What kind of thing is not served. Programs decide by it: the sentences are for people. */
export type ProblemKind =
  /** Another Service owns the address and port. */
  | 'conflict'
  /** An endpoint that must not be used, such as `loopback-endpoint`. */
  | `${UnsafeKind}-endpoint`
  /** An external or load-balancer IP that must not be served, such as `loopback-address`. */
  | `${UnsafeKind}-address`
  /** An external or load-balancer IP that belongs to this node or to a pod. */
  | 'protected-address'
  /** An address of a family in which the Service has no cluster IP. */
  | 'other-family-address'
  /** An address with source ranges, in a data plane that cannot enforce them. */
  | 'unenforced-source-ranges'
  | 'unusable-address'
  | 'unusable-port'
  | 'unusable-source-range'

/** A part of a Service that is not served. */
export interface ServiceProblem {
  /** What is wrong, for programs. */
  readonly kind: ProblemKind
  /** Without the Service's name. */
  readonly sentence: string
}

/** Told what of a Service cannot be served, and why. The rest of the Service is served. */
export type Report = (kind: ProblemKind, sentence: string) => void

/** Who serves one port of a Service in one family, for each kind of traffic. */
export interface PortEndpoints {
  /** Traffic to cluster IPs. */
  readonly internal: Audience
  /** Traffic of pods and of this node to the Service's other addresses. */
  readonly cluster: Audience
  /** Traffic from outside to the Service's other addresses. The same object as `cluster` unless the policy is Local. */
  readonly external: Audience
  /** Endpoints that get no new connections but still serve those they have. */
  readonly draining: readonly FrontendEndpoint[]
}

export interface PortEndpointsOptions {
  /** Tells which endpoints are on this node. */
  readonly node: NodeFacts
  /** Whether endpoints on loopback addresses are used. */
  readonly allowLoopback: boolean
  /** Told what is not served, and why. */
  readonly report: Report
}

/** @param port undefined: the Service has whole addresses, and every endpoint serves it on all ports */
export function portEndpoints(
  item: ServiceEndpoints,
  port: localv1.PortMapping | undefined,
  family: Family,
  { node, allowLoopback, report }: PortEndpointsOptions,
): PortEndpoints {
  const { internalTrafficToLocal, externalTrafficToLocal } = item.service
  const found = new Found()
  for (const serving of port ? endpointsOfPort(item, port) : onAllPorts(item)) {
    if (port && !isPort(serving.port)) continue
    for (const text of ipsOf(serving.endpoint.ips, family)) {
      const ip = parseIp(text)
      const kind = ip && unsafeKindOf(ip.text)
      const unsafe = kind === 'loopback' && allowLoopback ? undefined : kind
      if (unsafe)
        report(
          `${unsafe}-endpoint`,
          `endpoint ${text} is not used because it is ${unsafe === 'unspecified' ? 'an' : 'a'} ${unsafe} address`,
        )
      if (ip?.family !== family || unsafe) continue
      const isLocal = serving.endpoint.local || node.onNode.has(ip.text)
      found.add({ ip: ip.text, port: serving.port, isLocal }, serving.scopes)
    }
  }
  const internal = found.with('internal')
  const external = found.with('external')
  const clusterOnly = found.with('cluster')
  // A Go server does not send the cluster scope. Ours never leaves it empty while there are endpoints for outside traffic.
  const cluster = clusterOnly.length > 0 ? clusterOnly : external
  const anywhere = isServed(port, family) ?? internal.length + cluster.length > 0
  const clusterAudience: Audience = { endpoints: cluster, otherwise: 'refuse' }
  return {
    internal: { endpoints: internal, otherwise: internalTrafficToLocal && anywhere ? 'drop' : 'refuse' },
    cluster: clusterAudience,
    external: externalTrafficToLocal
      ? { endpoints: external, otherwise: anywhere ? 'drop' : 'refuse' }
      : clusterAudience,
    draining: found.draining(),
  }
}

/** Up to this many endpoints are compared one by one; an index for each of thousands of small Services would cost more. */
const few = 16

/** The endpoints of a port with their scopes. Lists that hold all of them are one object. */
class Found {
  readonly #endpoints: FrontendEndpoint[] = []
  readonly #scopes: Scopes[] = []
  #keys: Set<string> | undefined
  /** The same address and port may be in two slices, with different scopes. */
  #hasRepeats = false
  /** How many have each scope, and how many have none. */
  readonly #counts = { internal: 0, external: 0, cluster: 0, none: 0 }

  add(endpoint: FrontendEndpoint, scopes: Scopes): void {
    this.#hasRepeats ||= this.#isKnown(endpoint)
    this.#endpoints.push(endpoint)
    this.#scopes.push(scopes)
    const counts = this.#counts
    if (scopes.internal) counts.internal++
    if (scopes.external) counts.external++
    if (scopes.cluster) counts.cluster++
    if (isDraining(scopes)) counts.none++
  }

  /** Those with a scope, each address and port once. */
  with(scope: keyof Scopes): readonly FrontendEndpoint[] {
    return this.#list(this.#counts[scope], (scopes) => scopes[scope])
  }

  /** Those without any scope, each address and port once. */
  draining(): readonly FrontendEndpoint[] {
    return this.#list(this.#counts.none, isDraining)
  }

  #list(count: number, isWanted: (scopes: Scopes) => boolean): readonly FrontendEndpoint[] {
    if (!this.#hasRepeats && count === this.#endpoints.length) return this.#endpoints
    if (count === 0) return none
    const list = this.#endpoints.filter((_, index) => isWanted(this.#scopes[index] as Scopes))
    return this.#hasRepeats ? [...new Map(list.map((endpoint) => [endpointKey(endpoint), endpoint])).values()] : list
  }

  #isKnown({ ip, port }: FrontendEndpoint): boolean {
    if (this.#endpoints.length < few) {
      for (const known of this.#endpoints) if (known.ip === ip && known.port === port) return true
      return false
    }
    this.#keys ??= new Set(this.#endpoints.map(endpointKey))
    const key = endpointKey({ ip, port })
    return this.#keys.has(key) || !this.#keys.add(key)
  }
}

const none: readonly FrontendEndpoint[] = []

const isDraining = ({ internal, external, cluster }: Scopes): boolean => !internal && !external && !cluster

const onAllPorts = ({ service, endpoints }: ServiceEndpoints): PortEndpoint[] =>
  endpoints.map((endpoint) => ({ endpoint, port: 0, scopes: scopesOf(service, endpoint) }))

/** Whether any endpoint of the cluster serves the port; undefined if the server does not say. */
const isServed = (port: localv1.PortMapping | undefined, family: Family): boolean | undefined =>
  family === 'IPv4' ? port?.servedFamilies?.v4 : port?.servedFamilies?.v6
