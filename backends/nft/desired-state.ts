import type { Log } from '@kpng/api'
import type { Changes, NodeView } from '@kpng/client'
import { Claims } from './claims.js'
import { type Elements, put, slotOf } from './element.js'
import { type Frontend, frontendsOf } from './frontends.js'
import { allListKinds, listKinds, maxEndpoints, type SetPath, setPath, shapeOf, splitSetPath } from './names.js'
import { type NodeContext, nodeElements, sameContext } from './node-context.js'
import { type Arrange, putCounted, putOwn, sharedOf } from './service-elements.js'
import { SharedElements } from './shared-elements.js'
import { listId, nextSlots, type SlotTable, splitListId } from './slots.js'
import { addDifference, emptyTransaction, type Transaction } from './transaction.js'

/** Where a service was reached and is reached. */
interface FrontendChange {
  readonly before: readonly Frontend[]
  readonly after: readonly Frontend[]
}

/**
 * What should be in the kernel, kept small: not the elements, only what cannot be worked out again from a view, which is who
 * has which slot, who owns a contested address, and how many services ask for a shared element.
 */
export class DesiredState {
  readonly #log: Log
  #context: NodeContext | undefined
  #slots: SlotTable = new Map()
  #claims = new Claims()
  #shared = new SharedElements()
  #nodeElements: Elements = new Map()

  constructor(log: Log) {
    this.#log = log
  }

  /** Everything that a view asks for. Endpoints keep the slots that they have in `known`, which is what the kernel holds. */
  rebuild(view: NodeView, context: NodeContext, known: Elements = new Map()): Elements {
    this.#context = context
    this.#claims = new Claims()
    this.#shared = new SharedElements()
    this.#slots = new Map()
    const frontends = new Map<string, Frontend[]>()
    for (const [path, item] of view.services) {
      const own = frontendsOf(item, context, this.#complaintsOf(path))
      frontends.set(path, own)
      for (const frontend of own) this.#claims.add(claimOf(frontend), path)
    }
    const all: Elements = new Map()
    const arrange = this.#assign(slotsIn(known))
    for (const [path, own] of frontends) {
      const owned = this.#owned(path, own)
      this.#put(all, owned, arrange)
      this.#shared.count(sharedOf(owned), 1)
    }
    for (const [set, key] of this.#shared.all()) put(all, set, key)
    this.#nodeElements = nodeElements(context, view.serviceCidrs)
    for (const [set, map] of this.#nodeElements) all.set(set, new Map(map))
    return all
  }

  /** The difference that a change makes. Undefined when it touches everything: then `rebuild`, and compare. */
  change(view: NodeView, changes: Changes, context: NodeContext): Transaction | undefined {
    if (!this.#context || !sameContext(context, this.#context)) return undefined
    const affected = this.#affected(view, changes, context)
    const before: Elements = new Map()
    const after: Elements = new Map()
    const left = new Set<string>()
    for (const [path, change] of affected) {
      const owned = this.#owned(path, change.before)
      for (const frontend of owned) for (const list of listsOf(frontend)) left.add(list)
      this.#put(before, owned, (list) => this.#slots.get(list) ?? [])
      this.#shared.count(sharedOf(owned), -1)
    }
    for (const path of changes.services.keys()) {
      const change = affected.get(path)
      for (const frontend of change?.before ?? []) this.#claims.remove(claimOf(frontend), path)
      for (const frontend of change?.after ?? []) this.#claims.add(claimOf(frontend), path)
    }
    const arrange = this.#assign(this.#slots)
    for (const [path, change] of affected) {
      const owned = this.#owned(path, change.after)
      for (const frontend of owned) for (const list of listsOf(frontend)) left.delete(list)
      this.#put(after, owned, arrange)
      this.#shared.count(sharedOf(owned), 1)
    }
    for (const list of left) this.#slots.delete(list)
    if (changes.serviceCidrs || changes.node) this.#collectNode(view, context, before, after)
    const transaction = emptyTransaction()
    addDifference(transaction, before, after)
    this.#shared.settle(transaction)
    return transaction
  }

  /** The endpoints of a key, as data of the map that they are in. */
  endpointsOf(map: SetPath, key: string): readonly string[] {
    return this.#slots.get(listId(map, key)) ?? []
  }

  /** Every list that has endpoints: its map and its key. */
  *lists(): Generator<[SetPath, string]> {
    for (const list of this.#slots.keys()) yield splitListId(list)
  }

  /** The service that is served under a key of a set: `namespace/name`. */
  ownerOf(path: SetPath, key: string): string | undefined {
    const { family, name } = splitSetPath(path)
    const kind = shapeOf(name).key.length === 2 ? 'nodePort' : 'cluster'
    return this.#claims.owner(claimOf({ kind, family, key }))
  }

  #put(elements: Elements, owned: readonly Frontend[], arrange: Arrange): void {
    putOwn(elements, owned, arrange)
    if (this.#context?.settings.counters) putCounted(elements, owned)
  }

  /** The services that changed, and those that share an address with one of them. */
  #affected(view: NodeView, changes: Changes, context: NodeContext): Map<string, FrontendChange> {
    const affected = new Map<string, FrontendChange>()
    for (const [path, { before, after }] of changes.services) {
      affected.set(path, {
        before: before ? frontendsOf(before, context) : [],
        after: after ? frontendsOf(after, context, this.#complaintsOf(path)) : [],
      })
    }
    for (const [path, { before, after }] of [...affected]) {
      for (const frontend of [...before, ...after]) {
        for (const other of this.#claims.claimants(claimOf(frontend))) {
          const item = other === path || affected.has(other) ? undefined : view.services.get(other)
          if (!item) continue
          const same = frontendsOf(item, context)
          affected.set(other, { before: same, after: same })
        }
      }
    }
    return affected
  }

  #owned(path: string, frontends: readonly Frontend[]): Frontend[] {
    return frontends.filter((frontend) => this.#claims.owner(claimOf(frontend)) === path)
  }

  #assign(previous: ReadonlyMap<string, readonly string[]>): Arrange {
    return (list, endpoints) => {
      const slots = nextSlots(previous.get(list) ?? [], endpoints)
      if (slots.length === 0) this.#slots.delete(list)
      else this.#slots.set(list, slots)
      return slots
    }
  }

  #collectNode(view: NodeView, context: NodeContext, before: Elements, after: Elements): void {
    for (const [set, map] of this.#nodeElements) before.set(set, map)
    this.#nodeElements = nodeElements(context, view.serviceCidrs)
    for (const [set, map] of this.#nodeElements) after.set(set, map)
  }

  #complaintsOf(path: string) {
    return (problem: string) => this.#log.warn('A part of a service is not served', { service: path, problem })
  }
}

/** Service keys of the two families differ in length; node-port keys do not. */
const claimOf = ({ kind, family, key }: Pick<Frontend, 'kind' | 'family' | 'key'>): string =>
  kind === 'nodePort' ? `${family} ${key}` : key

/** The lists that a frontend may have. */
function listsOf({ family, kind, key, local }: Frontend): string[] {
  const [all, localOnly] =
    kind === 'nodePort'
      ? ([listKinds.nodePorts, listKinds.localNodePorts] as const)
      : ([listKinds.services, listKinds.localServices] as const)
  return (local ? [all, localOnly] : [all]).map(({ endpoints }) => listId(setPath(family, endpoints), key))
}

/** The slots that elements of the kernel show. A gap, which only drift can make, is an empty string. */
function slotsIn(elements: Elements): SlotTable {
  const table = new Map<string, string[]>()
  for (const [path, map] of elements) {
    if (!allListKinds.some(({ endpoints }) => path.endsWith(` ${endpoints}`))) continue
    for (const [key, data] of map) {
      const list = listId(path, key.slice(0, -4))
      const slot = slotOf(key.slice(-4))
      if (slot >= maxEndpoints) continue
      const slots = table.get(list)
      if (slots) slots[slot] = data
      else {
        const fresh: string[] = []
        fresh[slot] = data
        table.set(list, fresh)
      }
    }
  }
  for (const [list, slots] of table)
    table.set(
      list,
      Array.from(slots, (endpoint) => endpoint ?? ''),
    )
  return table
}
