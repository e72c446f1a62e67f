import type { Log } from '@kpng/api'
import type { Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import { Claims } from './claims.js'
import { Complaints } from './complaints.js'
import { type Elements, put } from './element.js'
import { keyText } from './element-text.js'
import { type Frontend, frontendsOf } from './frontends.js'
import { names, type SetPath, setPath, shapeOf, splitSetPath } from './names.js'
import { type NodeContext, nodeElements, sameContext } from './node-context.js'
import { type Arrange, putCounted, putOwn, sharedOf } from './service-elements.js'
import { listsOfKey } from './serving.js'
import { SharedElements } from './shared-elements.js'
import { listId, nextSlots, type SlotTable, slotsIn, splitListId } from './slots.js'
import { addDifference, emptyTransaction, type Transaction } from './transaction.js'

/** Where a service is reached, and what of it cannot be served. */
interface Reach {
  readonly frontends: readonly Frontend[]
  readonly problems: readonly string[]
}

interface ReachChange {
  readonly before: Reach
  readonly after: Reach
}

/**
 * What should be in the kernel, kept small: not the elements, only what cannot be worked out again from a view, which is who
 * has which slot, who owns a contested address, and how many services ask for a shared element.
 */
export class DesiredState {
  readonly #complaints: Complaints
  #context: NodeContext | undefined
  #slots: SlotTable = new Map()
  #claims = new Claims()
  #shared = new SharedElements()
  #nodeElements: Elements = new Map()

  constructor(log: Log) {
    this.#complaints = new Complaints(log)
  }

  /** Everything that a view asks for. Endpoints keep the slots that they have in `known`, which is what the kernel holds. */
  rebuild(view: NodeView, context: NodeContext, known: Elements = new Map()): Elements {
    this.#context = context
    this.#claims = new Claims()
    this.#shared = new SharedElements()
    this.#slots = new Map()
    this.#complaints.keep(view.services)
    const reaches = new Map<string, Reach>()
    for (const [path, item] of view.services) {
      const reach = reachOf(item, context)
      reaches.set(path, reach)
      this.#claim(path, reach)
    }
    const all: Elements = new Map()
    const arrange = this.#assign(slotsIn(known))
    for (const [path, reach] of reaches) {
      const owned = this.#owned(path, reach)
      this.#complain(path, reach)
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
      const { before, after } = affected.get(path) ?? { before: nowhere, after: nowhere }
      this.#unclaim(path, before)
      this.#claim(path, after)
    }
    const arrange = this.#assign(this.#slots)
    for (const [path, change] of affected) {
      const owned = this.#owned(path, change.after)
      this.#complain(path, change.after)
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
  #affected(view: NodeView, changes: Changes, context: NodeContext): Map<string, ReachChange> {
    const affected = new Map<string, ReachChange>()
    for (const [path, { before, after }] of changes.services) {
      affected.set(path, { before: reachOf(before, context), after: reachOf(after, context) })
    }
    for (const [path, { before, after }] of [...affected]) {
      for (const frontend of [...before.frontends, ...after.frontends]) {
        for (const other of this.#claims.claimants(claimOf(frontend))) {
          const item = other === path || affected.has(other) ? undefined : view.services.get(other)
          if (!item) continue
          const same = reachOf(item, context)
          affected.set(other, { before: same, after: same })
        }
      }
    }
    return affected
  }

  #claim(path: string, { frontends }: Reach): void {
    for (const frontend of frontends) this.#claims.add(claimOf(frontend), path, frontend.kind === 'cluster')
  }

  #unclaim(path: string, { frontends }: Reach): void {
    for (const frontend of frontends) this.#claims.remove(claimOf(frontend), path, frontend.kind === 'cluster')
  }

  #owned(path: string, { frontends }: Reach): Frontend[] {
    return frontends.filter((frontend) => this.#claims.owner(claimOf(frontend)) === path)
  }

  #complain(path: string, { frontends, problems }: Reach): void {
    const taken: string[] = []
    for (const frontend of frontends) {
      const owner = this.#claims.owner(claimOf(frontend))
      if (owner !== path) taken.push(`${placeText(frontend)} is another service's: ${owner}`)
    }
    this.#complaints.note(path, taken.length > 0 ? [...problems, ...taken] : problems)
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
}

const nowhere: Reach = { frontends: [], problems: [] }

function reachOf(item: ServiceEndpoints | undefined, context: NodeContext): Reach {
  if (!item) return nowhere
  const problems: string[] = []
  return { frontends: frontendsOf(item, context, (problem) => problems.push(problem)), problems }
}

/** `10.96.0.1 . tcp . 80`, as the sets have it, or `node port tcp . 30080`. */
const placeText = ({ kind, family, key }: Frontend): string =>
  kind === 'nodePort'
    ? `node port ${keyText(setPath(family, names.externalNodePorts), key)}`
    : keyText(setPath(family, names.externalServices), key)

/** Service keys of the two families differ in length; node-port keys do not. */
const claimOf = ({ kind, family, key }: Pick<Frontend, 'kind' | 'family' | 'key'>): string =>
  kind === 'nodePort' ? `${family} ${key}` : key

/** The lists that a frontend may have. */
function listsOf({ family, key, local }: Frontend): string[] {
  const [all, localOnly] = listsOfKey(key)
  return (local ? [all, localOnly] : [all]).map(({ endpoints }) => listId(setPath(family, endpoints), key))
}
