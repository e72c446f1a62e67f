import type { FrontendAddress, HeldFrontend } from '@kpng/client'

/** One rule of a chain, as far as it says where connections go. */
export interface Rule {
  /** Whether it is for some packets only: those of pods, those of this node. */
  readonly isConditional: boolean
  /** The chains that it goes or jumps to. */
  readonly chains: readonly string[]
  /** The endpoints that it sends connections to: `10.244.1.5:8080`. */
  readonly endpoints: readonly string[]
}

/** kube-proxy's rules of one address family, whatever its mode. */
export interface KubeProxyRules {
  readonly chains: ReadonlyMap<string, readonly Rule[]>
  /** The first chain of each frontend, by `keyOf`. */
  readonly entrances: ReadonlyMap<string, string>
  /** What happens to connections that no endpoint serves, by `keyOf`. */
  readonly otherwise: ReadonlyMap<string, 'refuse' | 'drop'>
  /** Whom session affinity remembers, by the chain of the endpoint. A chain without clients is there too. */
  readonly remembered: ReadonlyMap<string, readonly string[]>
}

/** Names a frontend in `KubeProxyRules`. The address of a node port is empty. */
export const keyOf = ({ address, protocol, port }: Pick<FrontendAddress, 'address' | 'port'> & { protocol: string }) =>
  `${address} ${protocol} ${port}`

/** What the rules hold for a frontend; undefined if they do not have it. */
export function heldIn(rules: KubeProxyRules, frontend: FrontendAddress): HeldFrontend | undefined {
  const key = keyOf(frontend)
  const entrance = rules.entrances.get(key)
  const otherwise = rules.otherwise.get(key)
  if (entrance === undefined && otherwise === undefined) return undefined
  const { inside, outside } = entrance === undefined ? { inside: [], outside: [] } : audiencesOf(rules, entrance)
  const sessionAffinity = rememberedBehind(rules, [...inside, ...outside])
  return {
    inside: endpointsBehind(rules, inside),
    outside: endpointsBehind(rules, outside),
    otherwise: otherwise ?? 'refuse',
    ...(sessionAffinity ? { sessionAffinity } : {}),
  }
}

/**
 * The chains with the endpoints. A chain for traffic from outside first sends pods and this node to all endpoints if the policy is
 * Local, and then everybody else to those of this node, if there are any.
 */
function audiencesOf(rules: KubeProxyRules, entrance: string): { inside: string[]; outside: string[] } {
  if (entrance.startsWith('KUBE-FW-')) {
    // Source ranges: each leads to the same chain.
    const [next] = chainsIn(rules.chains.get(entrance) ?? [])
    return next === undefined ? { inside: [], outside: [] } : audiencesOf(rules, next)
  }
  const isExternal = entrance.startsWith('external-') || entrance.startsWith('KUBE-EXT-')
  if (!isExternal) return { inside: [entrance], outside: [entrance] }
  const found = rules.chains.get(entrance) ?? []
  const shortcuts = chainsIn(found.filter(({ isConditional }) => isConditional))
  const outside = chainsIn(found.filter(({ isConditional }) => !isConditional))
  return { inside: shortcuts.length > 0 ? shortcuts : outside, outside }
}

const marks = new Set(['KUBE-MARK-MASQ', 'KUBE-MARK-DROP'])

const chainsIn = (rules: readonly Rule[]): string[] =>
  rules.flatMap(({ chains }) => chains).filter((chain) => !marks.has(chain))

function endpointsBehind(rules: KubeProxyRules, chains: readonly string[]): string[] {
  const found = [...reachable(rules, chains)].flatMap((chain) =>
    (rules.chains.get(chain) ?? []).flatMap(({ endpoints }) => endpoints),
  )
  return [...new Set(found)]
}

/** Undefined: no session affinity. */
function rememberedBehind(rules: KubeProxyRules, chains: readonly string[]): HeldFrontend['sessionAffinity'] {
  const found = [...reachable(rules, chains)].filter((chain) => rules.remembered.has(chain))
  if (found.length === 0) return undefined
  return found.flatMap((chain) => {
    const [endpoint = chain] = (rules.chains.get(chain) ?? []).flatMap(({ endpoints }) => endpoints)
    return (rules.remembered.get(chain) ?? []).map((client) => ({ client, endpoint }))
  })
}

function reachable(rules: KubeProxyRules, chains: readonly string[]): Set<string> {
  const found = new Set(chains)
  // A set may grow while it is walked: what is added is walked too.
  for (const chain of found) for (const next of chainsIn(rules.chains.get(chain) ?? [])) found.add(next)
  return found
}
