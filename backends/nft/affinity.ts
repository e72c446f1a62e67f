import type { Family } from './address.js'
import type { DesiredState } from './desired-state.js'
import type { ElementMap, Elements } from './element.js'
import { allListKinds, type ListKind, listKinds, names, type SetPath, setPath, splitSetPath } from './names.js'
import type { Transaction } from './transaction.js'

/**
 * Knows which keys remember their clients, so that a client whose endpoint goes is released. Packets write the affinity map;
 * what is in it must be read from the kernel.
 */
export class Affinity {
  readonly #sticky = new Set<string>()

  /** Starts over from what the kernel holds. */
  reset(elements: Elements): void {
    this.#sticky.clear()
    this.#note(elements, true)
  }

  /** Takes in a transaction that was committed, or is about to be. */
  note({ remove, add }: Transaction): void {
    this.#note(remove, false)
    this.#note(add, true)
  }

  /** The families in which a transaction may leave clients with an endpoint that is gone. */
  touchedBy({ remove }: Transaction): Family[] {
    const touched = new Set<Family>()
    for (const [path, map] of remove) {
      const { family, name } = splitSetPath(path)
      if (name === names.sticky || name === names.stickyNodePorts) touched.add(family)
      else if (isList(name) && [...map.keys()].some((key) => this.#sticky.has(`${family} ${key.slice(0, -4)}`))) {
        touched.add(family)
      }
    }
    return [...touched]
  }

  get isUsed(): boolean {
    return this.#sticky.size > 0
  }

  /** What must go from an affinity map: clients of endpoints that do not serve. */
  stale(family: Family, remembered: ElementMap, state: DesiredState): ElementMap {
    const stale: ElementMap = new Map()
    const addressLength = family === 'ip' ? 4 : 16
    const serves = (kinds: readonly ListKind[], key: string, endpoint: string) =>
      this.#sticky.has(`${family} ${key}`) &&
      kinds.some(({ endpoints }) => state.endpointsOf(setPath(family, endpoints), key).includes(endpoint))
    for (const [key, endpoint] of remembered) {
      const service = key.slice(addressLength)
      const nodePort = key.slice(2 * addressLength)
      if (serves([listKinds.services, listKinds.localServices], service, endpoint)) continue
      if (serves([listKinds.nodePorts, listKinds.localNodePorts], nodePort, endpoint)) continue
      stale.set(key, endpoint)
    }
    return stale
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
