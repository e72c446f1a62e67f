import type { Log } from '@kpng/api'
import type { Frontend, FrontendChanges, FrontendTable } from '@kpng/dataplane'
import {
  addDifference,
  type Elements,
  emptyTransaction,
  mapAt,
  put,
  type SetPath,
  setPath,
  type TableFamily,
  type Transaction,
} from '@kpng/linux/nftables'
import { listKindsOfKey } from '../rules/names.js'
import { isServed, limitOf, listsOf, putOwn, sharedOf } from './frontend-elements.js'
import { nodeElements } from './node-elements.js'
import { nextSlots, pathOf, putSlotChanges, putSlots, type Slots, slotsIn } from './slots.js'

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
  #slots: Slots = new Map()
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
    this.#reset(table)
    const all: Elements = new Map()
    for (const frontend of table.all()) this.#add(all, frontend, before)
    for (const [path, key] of this.#shared.all()) put(all, path, key)
    for (const [path, map] of this.#node) all.set(path, new Map(map))
    return all
  }

  /** Everything that a table asks for, in parts of whole frontends: for tables of the kernel that are new and empty. */
  *load(table: FrontendTable): Generator<Transaction> {
    this.#reset(table)
    let part: Transaction = { remove: new Map(), add: new Map(this.#node) }
    let count = 0
    for (const frontend of table.all()) {
      if (count === frontendsPerPart) {
        this.#shared.settle(part)
        yield part
        part = emptyTransaction()
        count = 0
      }
      this.#add(part.add, frontend, noSlots)
      count++
    }
    this.#shared.settle(part)
    yield part
  }

  #reset({ node }: FrontendTable): void {
    this.#slots = new Map()
    this.#shared = new SharedElements()
    this.#node = nodeElements(node, this.#options)
  }

  /** A frontend with all its elements but the shared ones, which are counted. */
  #add(elements: Elements, frontend: Frontend, known: Slots): void {
    this.#reportLimit(frontend)
    if (!isServed(frontend)) return
    putOwn(elements, frontend, this.#options.counters)
    for (const list of listsOf(frontend)) {
      if (list.endpoints.length === 0) continue
      const path = pathOf(list)
      const slots = nextSlots(known.get(path)?.get(list.key) ?? none, list.endpoints)
      mapAt(this.#slots, path).set(list.key, slots)
      putSlots(elements, list, slots)
    }
    this.#shared.count(frontend, 1)
  }

  /** What must be written to the kernel after a change. */
  change({ frontends, nodeBefore }: FrontendChanges, { node }: FrontendTable): Transaction {
    const before: Elements = new Map()
    const after: Elements = new Map()
    for (const change of frontends) {
      if (change.after) this.#reportLimit(change.after)
      else if (change.before) this.#limits.delete(change.before.id)
      this.#changeLists(change.before, change.after, before, after)
      this.#putOwn(before, change.before, -1)
      this.#putOwn(after, change.after, 1)
    }
    if (nodeBefore) {
      for (const [path, map] of this.#node) before.set(path, map)
      this.#node = nodeElements(node, this.#options)
      for (const [path, map] of this.#node) after.set(path, map)
    }
    const transaction = emptyTransaction()
    addDifference(transaction, before, after)
    this.#shared.settle(transaction)
    return transaction
  }

  /** The endpoints of a key, as data of the map that they are in. */
  endpointsOf(map: SetPath, key: string): readonly string[] {
    return this.#slots.get(map)?.get(key) ?? none
  }

  #putOwn(elements: Elements, frontend: Frontend | undefined, step: 1 | -1): void {
    if (!frontend || !isServed(frontend)) return
    putOwn(elements, frontend, this.#options.counters)
    this.#shared.count(frontend, step)
  }

  #changeLists(before: Frontend | undefined, after: Frontend | undefined, old: Elements, now: Elements): void {
    const lists = after && isServed(after) ? listsOf(after) : []
    const gone = (before && isServed(before) ? listsOf(before) : []).filter(
      ({ kind, key }) => !lists.some((list) => list.kind === kind && list.key === key),
    )
    for (const list of [...gone.map((list) => ({ ...list, endpoints: none })), ...lists]) {
      const slots = mapAt(this.#slots, pathOf(list))
      const previous = slots.get(list.key) ?? none
      const next = nextSlots(previous, list.endpoints)
      if (next.length > 0) slots.set(list.key, next)
      else slots.delete(list.key)
      putSlotChanges(old, now, list, previous, next)
    }
  }

  #reportLimit(frontend: Frontend): void {
    const { id, service } = frontend
    const reason = limitOf(frontend)?.problem
    if (reason === this.#limits.get(id)) return
    if (reason === undefined) this.#limits.delete(id)
    else {
      this.#limits.set(id, reason)
      this.#options.log.warn('nftables cannot serve all of a Service', { service, frontend: id, reason })
    }
  }
}

const none: readonly string[] = []

/** Few enough that the kernel gets the first part soon, and many enough that the number of transactions costs little. */
const frontendsPerPart = 500

const noSlots: Slots = new Map()

/** The number of frontends that need an element. It is added with the first of them and removed with the last. */
class SharedElements {
  readonly #counts = new Map<SetPath, Map<string, number>>()
  /** Whether an element was there before the first change since the last `settle`. */
  readonly #touched = new Map<SetPath, Map<string, boolean>>()

  count(frontend: Frontend, step: 1 | -1): void {
    for (const [path, key] of sharedOf(frontend)) {
      const counts = mapAt(this.#counts, path)
      const touched = mapAt(this.#touched, path)
      const now = counts.get(key) ?? 0
      if (!touched.has(key)) touched.set(key, now > 0)
      if (now + step > 0) counts.set(key, now + step)
      else counts.delete(key)
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

/** Whether any client of a key may be given an endpoint. */
export const serves = (state: ElementState, family: TableFamily, key: string, endpoint: string): boolean =>
  listKindsOfKey(family, key).some(({ endpoints }) =>
    state.endpointsOf(setPath(family, endpoints), key).includes(endpoint),
  )
