import { CidrSet, type Family, familyOf, parseCidrs } from '@kpng/api'
import type { Client, Connection } from '@kpng/dataplane'
import type { Place } from '../rules.js'
import type { IpvsState } from '../state.js'
import { serverKey } from '../virtual-servers.js'

// What the rules and IPVS do with a new connection, by hand: the chains of rules.ts in words of TypeScript.

export interface Seen {
  readonly outcome: 'endpoint' | 'refused' | 'dropped' | 'passed'
  readonly endpoints: readonly string[]
  readonly isMasqueraded: boolean
}

export function walk(state: IpvsState, place: Place, connection: Connection): Seen {
  const { client, to, port, protocol } = connection
  const family = familyOf(to)
  const sets = setsOf(state, family)
  const at = (name: string, key: string) => sets.get(name)?.get(key)
  const named = [
    ['', `${to} . ${protocol} . ${port}`],
    ['whole-', `${to} . ${protocol}`],
  ] as const
  const entrance = named.find(([prefix, key]) => at(`${prefix}servers`, key) !== undefined)
  if (!entrance) {
    if (at('addresses', to) !== undefined) return nowhere('refused')
    const isInRange = new CidrSet(parseCidrs(place.serviceRanges)).has(to)
    return nowhere(isInRange ? 'dropped' : 'passed')
  }
  const [prefix, key] = entrance
  // The interface has the address, so the node's own packets to it have it as their source.
  const source = client.kind === 'node' && at('addresses', to) !== undefined ? to : (client.ip ?? '')
  if (at(`${prefix}restricted`, key) !== undefined && !isAllowed(sets, `${prefix}allowed-`, key, source)) {
    return nowhere('dropped')
  }
  const audience = client.kind === 'outside' ? 'outside' : 'inside'
  const refusal = at(`${prefix}refused-${audience}`, key)
  if (refusal !== undefined) return nowhere(refusal === 'drop' ? 'dropped' : 'refused')
  const mark = at(`${prefix}marks-${audience}`, key)
  const found = state.servers.get(
    mark === undefined ? serverKey({ family, address: to, protocol, port, mark: 0 }) : `${family} mark ${mark}`,
  )
  if (!found || found.destinations.size === 0) return nowhere('refused')
  const isMasqueraded =
    client.kind === 'node' || (mark === undefined ? hasBit(at, key, client, place) : (Number(mark) & 0x00800000) !== 0)
  return { outcome: 'endpoint', endpoints: [...found.destinations.keys()].sort(), isMasqueraded }
}

function hasBit(
  at: (name: string, key: string) => string | undefined,
  key: string,
  client: Client,
  place: Place,
): boolean {
  if (at('masquerade-all', key) !== undefined) return true
  return client.kind === 'outside' && place.pods.length > 0 && at('masquerade-others', key) !== undefined
}

/** The name of a set ends with the length of its blocks. */
function isAllowed(sets: ReadonlyMap<string, ReadonlyMap<string, string>>, name: string, key: string, source: string) {
  const ranges = [...sets].flatMap(([set, elements]) =>
    set.startsWith(name)
      ? [...elements.keys()]
          .filter((each) => each.startsWith(`${key} . `))
          .map((each) => `${each.slice(key.length + 3)}/${set.slice(name.length)}`)
      : [],
  )
  return new CidrSet(parseCidrs(ranges)).has(source)
}

function setsOf(state: IpvsState, family: Family): Map<string, Map<string, string>> {
  const sets = new Map<string, Map<string, string>>()
  for (const { set, key, value = '' } of state.elements(family)) {
    const known = sets.get(set)
    // A key with two values would be refused by the kernel.
    if (known?.has(key)) throw new Error(`The set ${set} has ${key} twice.`)
    if (known) known.set(key, value)
    else sets.set(set, new Map([[key, value]]))
  }
  return sets
}

const nowhere = (outcome: Seen['outcome']): Seen => ({ outcome, endpoints: [], isMasqueraded: false })
