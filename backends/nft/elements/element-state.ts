import type { Log } from '@kpng/api'
import { type Frontend, type FrontendChanges, type FrontendTable, frontendId } from '@kpng/dataplane'
import type { TableFamily } from '../rules/family.js'
import { listKindsOfKey, type SetPath, setPath } from '../rules/names.js'
import { addDifference, type Elements, emptyTransaction, put, type Transaction } from './element.js'
import { limitOf, listsOf, putOwn, putShared } from './frontend-elements.js'
import { nodeElements } from './node-elements.js'
import { idOf, listId, nextSlots, putSlotChanges, putSlots, slotsIn } from './slots.js'

export interface ElementStateOptions {
  /** Whether connections are counted per service port. */
  readonly counters: boolean
  readonly masqueradeAll: boolean
  readonly log: Log
}

/**
 * What should be in the kernel. To save memory it does not keep the elements, only what cannot be derived from the frontends: which
 * endpoint has which slot, and how many frontends need a shared element.
 */
export class ElementState {
  readonly #options: ElementStateOptions
  /** By list. */
  #slots = new Map<string, readonly string[]>()
  #shared = new SharedElements()
  #node: Elements = new Map()
  /** What nftables cannot do, by frontend; each is logged once. */
  #limits = new Map<string, string>()

  constructor(options: ElementStateOptions) {
    this.#options = options
  }

  /** Everything that a table asks for. Endpoints keep the slots that they have in `known`, which is what the kernel holds. */
  rebuild(table: FrontendTable, known: Elements = new Map()): Elements {
    const before = slotsIn(known)
    this.#slots = new Map()
    this.#shared = new SharedElements()
    const all: Elements = new Map()
    for (const frontend of table.all()) {
      if (!this.#serves(frontend)) continue
      putOwn(all, frontend, this.#options.counters)
      for (const list of listsOf(frontend)) {
        const slots = nextSlots(before.get(idOf(list)) ?? [], list.endpoints)
        if (slots.length > 0) this.#slots.set(idOf(list), slots)
        putSlots(all, list, slots)
      }
      this.#shared.count(frontend, 1)
    }
    for (const [path, key] of this.#shared.all()) put(all, path, key)
    this.#node = nodeElements(table.node, this.#options)
    for (const [path, map] of this.#node) all.set(path, new Map(map))
    return all
  }

  /** What must be written to the kernel after a change. */
  change(changes: FrontendChanges, table: FrontendTable): Transaction {
    const before: Elements = new Map()
    const after: Elements = new Map()
    for (const change of changes.frontends) {
      this.#changeLists(change.before, change.after, before, after)
      this.#putOwn(before, change.before, -1)
      this.#putOwn(after, change.after, 1)
    }
    if (changes.nodeBefore) {
      for (const [path, map] of this.#node) before.set(path, map)
      this.#node = nodeElements(table.node, this.#options)
      for (const [path, map] of this.#node) after.set(path, map)
    }
    const transaction = emptyTransaction()
    addDifference(transaction, before, after)
    this.#shared.settle(transaction)
    return transaction
  }

  /** The endpoints of a key, as data of the map that they are in. */
  endpointsOf(map: SetPath, key: string): readonly string[] {
    return this.#slots.get(listId(map, key)) ?? none
  }

  #putOwn(elements: Elements, frontend: Frontend | undefined, step: 1 | -1): void {
    if (!frontend || !this.#serves(frontend)) return
    putOwn(elements, frontend, this.#options.counters)
    this.#shared.count(frontend, step)
  }

  #changeLists(before: Frontend | undefined, after: Frontend | undefined, old: Elements, now: Elements): void {
    const lists = new Map((after && this.#serves(after) ? listsOf(after) : []).map((list) => [idOf(list), list]))
    const gone = (before && this.#serves(before) ? listsOf(before) : []).filter((list) => !lists.has(idOf(list)))
    for (const list of [...gone, ...lists.values()]) {
      const id = idOf(list)
      const slots = this.#slots.get(id) ?? none
      const next = nextSlots(slots, lists.get(id)?.endpoints ?? none)
      if (next.length > 0) this.#slots.set(id, next)
      else this.#slots.delete(id)
      putSlotChanges(old, now, list, slots, next)
    }
  }

  #serves(frontend: Frontend): boolean {
    const limit = limitOf(frontend)
    const id = frontendId(frontend)
    const known = this.#limits.get(id)
    if (limit && known !== limit.problem) {
      this.#limits.set(id, limit.problem)
      this.#options.log.warn('nftables cannot serve all of a Service', {
        service: frontend.service,
        frontend: id,
        reason: limit.problem,
      })
    } else if (!limit && known !== undefined) this.#limits.delete(id)
    return limit?.isServed ?? true
  }
}

const none: readonly string[] = []

/** The number of frontends that need an element. It is added with the first of them and removed with the last. */
class SharedElements {
  readonly #counts = new Map<SetPath, Map<string, number>>()
  /** Whether an element was there before the first change since the last `settle`. */
  readonly #touched = new Map<SetPath, Map<string, boolean>>()

  count(frontend: Frontend, step: 1 | -1): void {
    const elements: Elements = new Map()
    putShared(elements, frontend)
    for (const [path, map] of elements) {
      const counts = entry(this.#counts, path)
      const touched = entry(this.#touched, path)
      for (const key of map.keys()) {
        const now = counts.get(key) ?? 0
        if (!touched.has(key)) touched.set(key, now > 0)
        if (now + step > 0) counts.set(key, now + step)
        else counts.delete(key)
      }
    }
  }

  /** Adds to a transaction what was added and removed since the last call. */
  settle(transaction: Transaction): void {
    for (const [path, keys] of this.#touched) {
      for (const [key, was] of keys) {
        const is = this.#counts.get(path)?.has(key) ?? false
        if (was !== is) put(is ? transaction.add : transaction.remove, path, key)
      }
    }
    this.#touched.clear()
  }

  /** Everything that was counted so far. It counts as written from now on. */
  *all(): Generator<[SetPath, string]> {
    this.#touched.clear()
    for (const [path, counts] of this.#counts) for (const key of counts.keys()) yield [path, key]
  }
}

function entry<T>(maps: Map<SetPath, Map<string, T>>, path: SetPath): Map<string, T> {
  let map = maps.get(path)
  if (!map) {
    map = new Map()
    maps.set(path, map)
  }
  return map
}

/** Whether any client of a key may be given an endpoint. */
export const serves = (state: ElementState, family: TableFamily, key: string, endpoint: string): boolean =>
  listKindsOfKey(family, key).some(({ endpoints }) =>
    state.endpointsOf(setPath(family, endpoints), key).includes(endpoint),
  )
