import { endpointKey, type Frontend, type FrontendEndpoint } from '@kpng/dataplane'
import type { ChainNames } from './names.js'
import type { Place } from './place.js'
import { comment, destinationOf, drawOneOf, hostRange, ruleOf } from './rule.js'

/** What the endpoints of one service port have in common. */
export interface EndpointRulesOptions {
  readonly names: ChainNames
  readonly place: Place
  /** Of the service port, for comments. */
  readonly title: string
  /** What the names of the chains are made of. */
  readonly hashed: string
  readonly protocol: Frontend['protocol']
  readonly sessionAffinitySeconds: number | undefined
}

/**
 * The rules that draw one endpoint. Each endpoint has a chain of its own, as in kube-proxy. In a large cluster only those have one
 * that need it: for session affinity, or because they are on this node and might reach themselves. All others are one rule, since
 * with legacy iptables the kernel replaces the whole table at each change, and the time for that is the size of the table.
 * @param put writes a chain
 */
export function drawRules(
  endpoints: readonly FrontendEndpoint[],
  options: EndpointRulesOptions,
  put: (chain: string, rules: readonly string[]) => void,
): string[] {
  const { names, place, title, hashed, protocol, sessionAffinitySeconds: seconds } = options
  const remembered: string[] = []
  const drawn: string[] = []
  endpoints.forEach((endpoint, index) => {
    const draw = drawOneOf(endpoints.length - index)
    if (place.isLarge && !endpoint.isLocal && seconds === undefined) {
      drawn.push(ruleOf(protocol === 'any' ? '' : `-p ${protocol}`, draw, toEndpoint(endpoint)))
      return
    }
    const chain = names.port('SEP', `${hashed}${endpointKey(endpoint)}`)
    put(chain, endpointRules(endpoint, options, chain))
    const text = place.isLarge ? '' : comment(`${title} -> ${endpointKey(endpoint)}`)
    if (seconds !== undefined) {
      const recent = `-m recent --rcheck --seconds ${seconds} --reap --name ${chain}`
      remembered.push(ruleOf(text, recent, `-j ${chain}`))
    }
    drawn.push(ruleOf(text, draw, `-j ${chain}`))
  })
  return [...remembered, ...drawn]
}

function endpointRules(endpoint: FrontendEndpoint, options: EndpointRulesOptions, chain: string): string[] {
  const { names, place, title, protocol, sessionAffinitySeconds } = options
  const text = place.isLarge ? '' : comment(title)
  const isAny = protocol === 'any'
  return [
    // A pod that reaches itself must see its node as the client, or it would answer itself directly.
    ruleOf(`-s ${hostRange(endpoint.ip, place.family)}`, text, `-j ${names.markMasquerade}`),
    ruleOf(
      isAny ? '' : `-p ${protocol}`,
      text,
      sessionAffinitySeconds === undefined ? '' : `-m recent --set --name ${chain}`,
      isAny ? '' : `-m ${protocol}`,
      toEndpoint(endpoint),
    ),
  ]
}

const toEndpoint = (endpoint: FrontendEndpoint): string => `-j DNAT --to-destination ${destinationOf(endpoint)}`
