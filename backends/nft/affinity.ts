import type { Family } from './address.js'
import type { DesiredState } from './desired-state.js'
import type { ElementMap, Elements } from './element.js'
import { allListKinds, names, type SetPath, setPath, splitSetPath } from './names.js'
import { lostOutside, serves } from './serving.js'
import type { Transaction } from './transaction.js'

/**
 * Knows which keys remember their clients, so that a client whose endpoint goes is released. Packets write the affinity map;
 * what is in it must be read from the kernel.
 */
export class Affinity {
  readonly #sticky = new Set<string>()
  /** Endpoints that clients from outside lost since `takeLost`, though others may stay with them. */
  #lost = new Set<string>()

  /** Starts over from what the kernel holds. */
  reset(elements: Elements): void {
    this.#sticky.clear()
    this.#lost.clear()
    this.#note(elements, true)
  }

  /** Takes in a transaction that was committed, or is about to be, and the state that it leads to. */
  note(transaction: Transaction, state: DesiredState): void {
    const isSticky = (family: Family, key: string) => this.#sticky.has(`${family} ${key}`)
    for (const { family, key, endpoint } of lostOutside(transaction, state, isSticky)) {
      this.#lost.add(`${family} ${key}${endpoint}`)
    }
    this.#note(transaction.remove, false)
    this.#note(transaction.add, true)
  }

  /** The families in which a transaction may leave clients with an endpoint that is gone, or not for them any more. */
  touchedBy({ remove, add }: Transaction): Family[] {
    const touched = new Set<Family>()
    for (const [path, map] of remove) {
      const { family, name } = splitSetPath(path)
      if (name === names.sticky || name === names.stickyNodePorts) touched.add(family)
      else if (isList(name) && this.#areAnySticky(family, map, (element) => element.slice(0, -4))) touched.add(family)
    }
    for (const [path, map] of add) {
      const { family, name } = splitSetPath(path)
      const isLocal = name === names.localServices || name === names.localNodePorts
      if (isLocal && this.#areAnySticky(family, map, (key) => key)) touched.add(family)
    }
    return [...touched]
  }

  /** The endpoints that clients from outside lost, for `stale`: whoever looks for those clients does so later, and not each time. */
  takeLost(): ReadonlySet<string> {
    const lost = this.#lost
    this.#lost = new Set()
    return lost
  }

  get isUsed(): boolean {
    return this.#sticky.size > 0
  }

  /** What must go from an affinity map: clients of endpoints that do not serve them. */
  stale(family: Family, remembered: ElementMap, state: DesiredState, lost: ReadonlySet<string>): ElementMap {
    const stale: ElementMap = new Map()
    const addressLength = family === 'ip' ? 4 : 16
    const mayStay = (key: string, endpoint: string) =>
      this.#sticky.has(`${family} ${key}`) &&
      !lost.has(`${family} ${key}${endpoint}`) &&
      serves(state, { family, key, endpoint })
    for (const [client, endpoint] of remembered) {
      const service = client.slice(addressLength)
      const nodePort = client.slice(2 * addressLength)
      if (!mayStay(service, endpoint) && !mayStay(nodePort, endpoint)) stale.set(client, endpoint)
    }
    return stale
  }

  #areAnySticky(family: Family, elements: ElementMap, keyOf: (element: string) => string): boolean {
    for (const element of elements.keys()) if (this.#sticky.has(`${family} ${keyOf(element)}`)) return true
    return false
  }

  #note(elements: Elements, isSticky: boolean): void {
    for (const [path, map] of elements) {
      const { family, name } = splitSetPath(path)
      if (name !== names.sticky && name !== names.stickyNodePorts) continue
      for (const key of map.keys()) {
        if (isSticky) this.#sticky.add(`${family} ${key}`)
        else this.#sticky.delete(`${family} ${key}`)
      }
    }
  }
}

const isList = (name: string): boolean => allListKinds.some(({ endpoints }) => endpoints === name)

export const affinityPath = (family: Family): SetPath => setPath(family, names.affinity)
