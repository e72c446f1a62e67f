import {
  type Audience,
  endpointKey,
  type Frontend,
  type FrontendEndpoint,
  isWholeAddress,
  servicePortName,
} from '@kpng/dataplane'
import { drawRules } from './endpoint-rules.js'
import type { ChainNames, PortChainKind } from './names.js'
import { countLocalhost } from './packet-counts.js'
import type { Place } from './place.js'
import { type Chains, comment, fromNode, fromRange, ruleOf, toFrontend } from './rule.js'

/**
 * The lists that the rules of all service ports are put together in, each a part of a chain that they share. The chain of node
 * ports comes before the one that leads to it.
 */
export const sharedLists = [
  'nodePorts',
  'services',
  'guards',
  'wholeAddresses',
  'refusedServices',
  'refusedExternals',
  'firewall',
] as const
export type SharedList = (typeof sharedLists)[number]

/** The rules of one service port in one family. */
export interface PortRules {
  /** Its own chains, all in the table nat. */
  readonly chains: Chains
  /** What it adds to the chains that all share. */
  readonly shared: Readonly<Record<SharedList, readonly string[]>>
}

/** Frontends with the same key have the same chains. */
export const servicePortKey = (frontend: Frontend): string => `${servicePortName(frontend)} ${frontend.protocol}`

/** @param frontends of one service port and family, in any order */
export function portRules(frontends: Iterable<Frontend>, names: ChainNames, place: Place): PortRules {
  const builder = new Builder(names, place)
  builder.build([...frontends].sort((a, b) => (a.id < b.id ? -1 : 1)))
  return { chains: builder.chains, shared: builder.shared }
}

/** Endpoints that one chain draws from. */
interface Policy {
  readonly kind: 'SVC' | 'SVL'
  readonly endpoints: readonly FrontendEndpoint[]
  /** Rules that mark traffic to cluster IPs for masquerading. */
  readonly marks: string[]
}

class Builder {
  readonly chains = new Map<string, readonly string[]>()
  readonly shared: Record<SharedList, string[]> = {
    services: [],
    guards: [],
    wholeAddresses: [],
    nodePorts: [],
    refusedServices: [],
    refusedExternals: [],
    firewall: [],
  }
  readonly #names: ChainNames
  readonly #place: Place
  #title = ''
  /** What the names of the chains are made of. */
  #hashed = ''

  constructor(names: ChainNames, place: Place) {
    this.#names = names
    this.#place = place
  }

  build(frontends: readonly Frontend[]): void {
    const [first] = frontends
    if (!first) return
    this.#title = servicePortName(first)
    this.#hashed = `${this.#title}${first.protocol}`
    const chainOf = this.#policyChains(frontends, first)
    for (const frontend of frontends) {
      if (frontend.kind === 'clusterIP') this.#addClusterIp(frontend, chainOf)
      else this.#addExternal(frontend, chainOf)
    }
  }

  /** Writes the chains that draw endpoints, and returns which one an audience has. */
  #policyChains(frontends: readonly Frontend[], { sessionAffinitySeconds, protocol }: Frontend) {
    const policies = new Map<string, Policy>()
    for (const frontend of frontends) {
      for (const audience of new Set([frontend.inside, frontend.outside])) {
        const { endpoints } = audience
        if (endpoints.length === 0) continue
        const key = policyKey(audience)
        const policy = policies.get(key) ?? { kind: policyKind(audience), endpoints, marks: [] }
        policies.set(key, policy)
        if (frontend.kind === 'clusterIP') policy.marks.push(...this.#marks(frontend))
      }
    }
    const chains = new Map<string, string>()
    const common = { names: this.#names, place: this.#place, title: this.#title, hashed: this.#hashed }
    const options = { ...common, protocol, sessionAffinitySeconds }
    for (const [key, { kind, endpoints, marks }] of policies) {
      const draw = drawRules(endpoints, options, (chain, rules) => this.chains.set(chain, rules))
      chains.set(key, this.#put(kind, [...marks, ...draw]))
    }
    return (audience: Audience): string => chains.get(policyKey(audience)) ?? ''
  }

  #marks(frontend: Frontend): string[] {
    const match = toFrontend(frontend, this.#place.isLarge ? '' : `${this.#title} cluster IP`)
    const { pods } = this.#place
    if (frontend.masquerade === 'always') return [ruleOf(match, this.#toMasquerade)]
    // Everybody is a pod, or nobody can tell.
    if (pods.length === 0 || pods.includes('')) return []
    if (pods.length > 1) return [ruleOf(match, `-j ${this.#names.markOutside}`)]
    return [ruleOf(`! ${pods[0]}`, match, this.#toMasquerade)]
  }

  #addClusterIp(frontend: Frontend, chainOf: (audience: Audience) => string): void {
    const { endpoints, otherwise } = frontend.inside
    if (endpoints.length > 0) {
      const match = toFrontend(frontend, `${this.#title} cluster IP`)
      this.#dispatch(frontend).push(ruleOf(match, `-j ${chainOf(frontend.inside)}`))
    } else
      this.shared.refusedServices.push(ruleOf(toFrontend(frontend, this.#whyRefused(otherwise)), verdict(otherwise)))
  }

  #addExternal(frontend: Frontend, chainOf: (audience: Audience) => string): void {
    const { inside, outside, allowedSources, kind } = frontend
    // Insiders are not bound to externalTrafficPolicy, so there may be a chain even if outsiders have no endpoint.
    let by = ''
    if (inside.endpoints.length > 0) {
      const external = this.#put('EXT', this.#externalRules(frontend, chainOf))
      const chain = allowedSources ? this.#put('FW', this.#firewallRules(allowedSources, external)) : external
      const what = { externalIP: ' external IP', loadBalancerIP: ' loadbalancer IP', nodePort: '' }
      const match = toFrontend(frontend, `${this.#title}${what[kind as keyof typeof what]}`)
      if (kind === 'nodePort' && this.#place.countsLoopback)
        this.shared.nodePorts.push(ruleOf('-d 127.0.0.0/8', match, countLocalhost, `-j ${chain}`))
      this.#dispatch(frontend).push(ruleOf(match, `-j ${chain}`))
      by = ` by ${chain}`
    }
    if (allowedSources) this.#addFirewall(frontend, allowedSources, by)
    if (outside.endpoints.length === 0) this.shared.refusedExternals.push(...this.#refusals(frontend))
    // What comes through here undecided must not reach a Service that has the whole address.
    const isUndecided = outside.endpoints.length === 0 || allowedSources !== undefined
    if (isUndecided && kind !== 'nodePort' && !isWholeAddress(frontend))
      this.shared.guards.push(ruleOf(toFrontend(frontend, this.#title), '-j RETURN'))
  }

  /** Drops what no chain of the table nat accepted. Those who may not connect are not told that nobody answers. */
  #addFirewall(frontend: Frontend, allowed: NonNullable<Frontend['allowedSources']>, by: string): void {
    const match = toFrontend(frontend, `${this.#title} traffic not accepted${by}`)
    for (const range of frontend.outside.endpoints.length === 0 ? allowed : [])
      this.shared.firewall.push(ruleOf(fromRange(range), match, '-j RETURN'))
    this.shared.firewall.push(ruleOf(match, '-j DROP'))
  }

  /** As in kube-proxy: who is masqueraded, and who of them may use the endpoints of other nodes. */
  #externalRules({ masquerade, inside, outside }: Frontend, chainOf: (audience: Audience) => string): string[] {
    const about = (what: string) => this.#comment(`${what} ${this.#title} external destinations`)
    const rules: string[] = []
    if (masquerade === 'node') {
      const toInside = `-j ${chainOf(inside)}`
      for (const pods of this.#place.pods) rules.push(ruleOf(pods, about('pod traffic for'), toInside))
      rules.push(ruleOf(about('masquerade LOCAL traffic for'), fromNode, this.#toMasquerade))
      rules.push(ruleOf(about('route LOCAL traffic for'), fromNode, toInside))
    } else rules.push(ruleOf(about('masquerade traffic for'), this.#toMasquerade))
    if (outside.endpoints.length > 0) rules.push(`-j ${chainOf(outside)}`)
    return rules
  }

  #firewallRules(allowed: NonNullable<Frontend['allowedSources']>, external: string): string[] {
    const text = this.#comment(`${this.#title} loadbalancer IP`)
    const other = this.#comment(`other traffic to ${this.#title} will be dropped by ${this.#names.firewall}`)
    return [
      ...allowed.map((range) => ruleOf(fromRange(range), text, `-j ${external}`)),
      ...(other === '' ? [] : [other]),
    ]
  }

  /** What happens to clients for whom there is no endpoint. */
  #refusals(frontend: Frontend): string[] {
    const { inside, outside, kind } = frontend
    const places = kind === 'nodePort' ? this.#place.nodePorts : ['']
    const rule = (otherwise: Audience['otherwise'], from = '') => {
      const match = toFrontend(frontend, this.#whyRefused(otherwise))
      return places.map((place) => ruleOf(from, place, match, verdict(otherwise)))
    }
    const rules: string[] = []
    if (inside.endpoints.length === 0 && inside.otherwise !== outside.otherwise) {
      for (const from of [...this.#place.pods, fromNode]) rules.push(...rule(inside.otherwise, from))
    }
    return [...rules, ...rule(outside.otherwise)]
  }

  #whyRefused(otherwise: Audience['otherwise']): string {
    return `${this.#title} has no ${otherwise === 'drop' ? 'local ' : ''}endpoints`
  }

  #dispatch(frontend: Frontend): string[] {
    if (frontend.kind === 'nodePort') return this.shared.nodePorts
    return isWholeAddress(frontend) ? this.shared.wholeAddresses : this.shared.services
  }

  /** In a large cluster only the rules in shared chains have comments: they are most of what a rule takes in the kernel. */
  #comment(text: string): string {
    return this.#place.isLarge ? '' : comment(text)
  }

  get #toMasquerade(): string {
    return `-j ${this.#names.markMasquerade}`
  }

  /**
   * The chain with these rules. A service port has one of each kind, named as in kube-proxy. Odd Services need more: two ports
   * with one name, source ranges that differ by address.
   */
  #put(kind: PortChainKind, rules: readonly string[]): string {
    for (let number = 1; ; number++) {
      const chain = this.#names.port(kind, number === 1 ? this.#hashed : `${this.#hashed} ${number}`)
      const known = this.chains.get(chain)
      if (known === undefined) this.chains.set(chain, rules)
      if (known === undefined || known.join('\n') === rules.join('\n')) return chain
    }
  }
}

/** A Local policy is seen in what happens without an endpoint. */
const policyKind = ({ otherwise }: Audience): Policy['kind'] => (otherwise === 'drop' ? 'SVL' : 'SVC')

const policyKey = (audience: Audience): string =>
  `${policyKind(audience)} ${audience.endpoints.map(endpointKey).join()}`

const verdict = (otherwise: Audience['otherwise']): string => (otherwise === 'drop' ? '-j DROP' : '-j REJECT')
