import { type Family, families } from './address.js'
import type { DesiredState } from './desired-state.js'
import type { Elements } from './element.js'
import { type ListKind, listKinds, names, setPath } from './names.js'
import type { Transaction } from './transaction.js'

// Whom a client may stay with, be it one that a sticky service remembers or one that keeps its UDP flow.

/** An endpoint under a service key or a node-port key. */
export interface KeyEndpoint {
  readonly family: Family
  readonly key: string
  readonly endpoint: string
}

/** The lists of a key: for all askers, and for those from outside under policy Local. A node-port key has no address. */
export const listsOfKey = (key: string): readonly [ListKind, ListKind] =>
  key.length > 8 ? [listKinds.services, listKinds.localServices] : [listKinds.nodePorts, listKinds.localNodePorts]

/** Whether an endpoint serves a key for any asker. */
export const serves = (state: DesiredState, of: KeyEndpoint): boolean =>
  listsOfKey(of.key).some((list) => isIn(list, of, state))

const isIn = ({ endpoints }: ListKind, { family, key, endpoint }: KeyEndpoint, state: DesiredState): boolean =>
  state.endpointsOf(setPath(family, endpoints), key).includes(endpoint)

/** Which sets say the policy of a key, and which list is for askers from outside under policy Local. */
const policies = [
  { cluster: names.externalServices, local: names.localServices, list: names.localEndpoints },
  { cluster: names.externalNodePorts, local: names.localNodePorts, list: names.localNodePortEndpoints },
]

/**
 * The endpoints that a transaction takes from askers from outside and leaves to pods and the node: the policy becomes Local, or
 * an endpoint is on another node now. Neither the affinity map nor a flow shows who asked from where, so whoever has such an
 * endpoint must draw again.
 */
export function* lostOutside(
  transaction: Transaction,
  state: DesiredState,
  isWanted: (family: Family, key: string) => boolean,
): Generator<KeyEndpoint> {
  for (const of of candidates(transaction, state)) {
    const [, forOutside] = listsOfKey(of.key)
    if (isWanted(of.family, of.key) && !isIn(forOutside, of, state)) yield of
  }
}

/** All endpoints of keys whose policy becomes Local, and those that leave a local list but not the one for all. */
function* candidates({ remove, add }: Transaction, state: DesiredState): Generator<KeyEndpoint> {
  for (const family of families) {
    const keysIn = (elements: Elements, name: string) => elements.get(setPath(family, name))
    for (const { cluster, local, list } of policies) {
      for (const key of keysIn(add, local)?.keys() ?? []) {
        if (!keysIn(remove, cluster)?.has(key)) continue
        for (const endpoint of state.endpointsOf(setPath(family, listsOfKey(key)[0].endpoints), key)) {
          yield { family, key, endpoint }
        }
      }
      for (const [element, endpoint] of keysIn(remove, list) ?? []) {
        const key = element.slice(0, -4)
        const of = { family, key, endpoint }
        if (!keysIn(remove, local)?.has(key) && isIn(listsOfKey(key)[0], of, state)) yield of
      }
    }
  }
}
