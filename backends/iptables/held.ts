import { readFile } from 'node:fs/promises'
import type { FrontendAddress, HeldFrontend } from '@kpng/client'
import type { ChainNames } from './names.js'
import { hostRange } from './rule.js'
import { partsOf, type RuleParts, type Saved } from './save.js'

/** What the rules do with one frontend, read from what iptables-save printed. Undefined: nothing. */
export function heldIn(saved: Saved, names: ChainNames, frontend: FrontendAddress): Held | undefined {
  const rulesIn = (table: 'nat' | 'filter', chain: string): RuleParts[] =>
    (saved[table].chains.get(chain) ?? []).map(partsOf)
  const isFor = isAbout(frontend)
  const entrance = frontend.kind === 'nodePort' ? names.nodePorts : names.services
  const nat = rulesIn('nat', entrance).find(isFor)
  const refusals = [names.services, names.externalServices].flatMap((chain) => rulesIn('filter', chain)).filter(isFor)
  if (!nat && refusals.length === 0) return undefined
  const endpointsIn = (chain: string | undefined): Map<string, string> => {
    const found = new Map<string, string>()
    for (const rule of chain === undefined ? [] : rulesIn('nat', chain)) {
      const { target } = rule
      // In a large cluster most endpoints have no chain of their own.
      const to = target === 'DNAT' ? rule.to : rulesIn('nat', target).find((each) => each.target === 'DNAT')?.to
      if (to !== undefined) found.set(to, target)
    }
    return found
  }
  const { inside, outside } = nat ? policyChains(nat.target, names, rulesIn) : {}
  const insiders = endpointsIn(inside)
  return {
    inside: insiders,
    outside: inside === outside ? insiders : endpointsIn(outside),
    otherwise: refusals.at(-1)?.target === 'DROP' ? 'drop' : 'refuse',
    hasAffinity: (saved.nat.chains.get(inside ?? '') ?? []).some((rule) => rule.includes(' -m recent ')),
  }
}

/** The endpoints, each with its chain. */
interface Held {
  readonly inside: ReadonlyMap<string, string>
  readonly outside: ReadonlyMap<string, string>
  readonly otherwise: 'refuse' | 'drop'
  readonly hasAffinity: boolean
}

function isAbout({ kind, family, address, protocol, port }: FrontendAddress): (rule: RuleParts) => boolean {
  // A rule about a node port has no destination, or the addresses of the node that serve node ports.
  const isThere = ({ destination, isToNode }: RuleParts) =>
    kind === 'nodePort' ? destination === '' || isToNode : destination === hostRange(address, family)
  return (rule) =>
    isThere(rule) && (protocol === 'any' ? rule.protocol === '' : rule.protocol === protocol && rule.port === port)
}

/** Follows FW and EXT to the chains that draw endpoints. */
function policyChains(
  first: string,
  names: ChainNames,
  rulesIn: (table: 'nat', chain: string) => RuleParts[],
): { inside?: string; outside?: string } {
  const isKind = (chain: string, kind: string) => names.isPortChain(chain) && chain.includes(`-${kind}-`)
  let chain = first
  if (isKind(chain, 'FW')) chain = rulesIn('nat', chain).find(({ target }) => isKind(target, 'EXT'))?.target ?? chain
  if (!isKind(chain, 'EXT')) return { inside: chain, outside: chain }
  const draws = rulesIn('nat', chain).filter(({ target }) => isKind(target, 'SVC') || isKind(target, 'SVL'))
  const forNode = draws.find(({ isFromNode }) => isFromNode)?.target
  const forAll = draws.find(({ isFromNode, source, interfaceName }) => !isFromNode && !source && !interfaceName)?.target
  const inside = forNode ?? forAll
  return { ...(inside === undefined ? {} : { inside }), ...(forAll === undefined ? {} : { outside: forAll }) }
}

/** As `Backend.held` answers, with the clients that the kernel remembers. */
export async function heldAnswer(held: Held): Promise<HeldFrontend> {
  const clients: { client: string; endpoint: string }[] = []
  for (const [endpoint, chain] of held.hasAffinity ? held.inside : []) {
    const list = await readFile(`/proc/net/xt_recent/${chain}`, 'utf8').catch(() => '')
    for (const [, client = ''] of list.matchAll(/^src=(\S+)/gm)) clients.push({ client, endpoint })
  }
  return {
    inside: [...held.inside.keys()],
    outside: [...held.outside.keys()],
    otherwise: held.otherwise,
    ...(held.hasAffinity ? { sessionAffinity: clients } : {}),
  }
}
