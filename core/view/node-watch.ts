import { type globalv1, localv1, zoneLabel } from '@kpng/api'
import { type Bookmark, type Changed, type ChangeRange, none, type ServiceEntry, type Store } from '../store/index.js'
import type { ChangeSet, Trigger, WholeState } from './change-set.js'
import { collect, diffOfAll, isEmpty, type ServiceDiff, ServiceDiffs, ServiceStep } from './diff.js'
import {
  type Batch,
  batchOf,
  type DeleteItem,
  inOneBatch,
  type NodeItem,
  nodeItem,
  serviceCidrItem,
  without,
} from './items.js'
import { NodeSnapshot } from './node-snapshot.js'
import type { NodeTopology } from './selection.js'
import { ServiceViews } from './service-view.js'
import { type Turns, Watch } from './watch.js'
import { SharedWork, type Work } from './work.js'

export interface NodeWatchOptions {
  readonly nodeName: string
  /** Sets beyond services and endpoints: SERVICE_CIDRS, NODES (the node itself). Default none. */
  readonly extraSets?: readonly localv1.Set[]
  /** Where the watcher was, if it has been here before and left a bookmark. */
  readonly from?: Bookmark | undefined
}

/** A node that nobody knows, or whose zone is not set, still has a view. */
export const topologyOf = (name: string, node: globalv1.Node | undefined): NodeTopology => ({
  name,
  zone: node?.topology?.zone || (node?.labels[zoneLabel] ?? ''),
})

/** What the nodes see of a store, worked out once for all watchers: the views of its services, and what changes make of them. */
export class NodeViews {
  readonly services = new ServiceViews()
  readonly #diffs = new ServiceDiffs()
  /** Kept as long as the range, which is until the store changes again. */
  readonly #changes = new WeakMap<ChangeRange, SharedWork<NodeChanges>>()
  /** Kept as long as somebody starts from it. */
  #snapshot:
    | WeakRef<{ readonly entries: readonly ServiceEntry[]; readonly making: SharedWork<NodeSnapshot> }>
    | undefined;

  /** All services of one revision. Many watchers start at once after a restart: it is worked out once for them. */
  *snapshot(entries: readonly ServiceEntry[]): Work<NodeSnapshot> {
    let known = this.#snapshot?.deref()
    if (known?.entries !== entries) {
      known = { entries, making: new SharedWork(NodeSnapshot.make(entries, this.services)) }
      this.#snapshot = new WeakRef(known)
    }
    return yield* known.making.finish()
  }

  /** What changed, for all watchers that are told of this range. */
  changes(range: ChangeRange): SharedWork<NodeChanges> {
    let making = this.#changes.get(range)
    if (!making) {
      making = new SharedWork(this.#make(range))
      this.#changes.set(range, making)
    }
    return making
  }

  step(path: string, change: Changed<ServiceEntry>): Work<ServiceStep> {
    return ServiceStep.make(path, change, this.services, this.#diffs)
  }

  *#make({ services }: ChangeRange): Work<NodeChanges> {
    const steps: ServiceStep[] = []
    for (const [path, change] of services) steps.push(yield* this.step(path, change))
    const ownSteps = new Map<string, Set<ServiceStep>>()
    for (const step of steps) {
      let count = 0
      for (const node of step.ownNodes()) {
        const own = ownSteps.get(node)
        if (own) own.add(step)
        else ownSteps.set(node, new Set([step]))
        if (++count % nodesAtOnce === 0) yield
      }
      yield
    }
    return new NodeChanges(steps, ownSteps)
  }
}

/** How many nodes are looked at before others may come in between. */
const nodesAtOnce = 256

/**
 * The services that changed, as the nodes see them. Most of what two nodes are told is the same: it is put together once for all nodes of a zone, and each
 * node is told what is its own instead of the part that is not.
 */
class NodeChanges {
  readonly steps: readonly ServiceStep[]
  /** The steps that a node may see in its own way. */
  readonly #ownSteps: ReadonlyMap<string, ReadonlySet<ServiceStep>>
  readonly #dependsOnZone: boolean
  readonly #common = new Map<string, SharedWork<CommonChanges>>()

  constructor(steps: readonly ServiceStep[], ownSteps: ReadonlyMap<string, ReadonlySet<ServiceStep>>) {
    this.steps = steps
    this.#ownSteps = ownSteps
    this.#dependsOnZone = steps.some((step) => step.dependsOnZone)
  }

  /** What a node is told that stays in its zone. */
  *of(node: NodeTopology): Work<ServiceChanges> {
    const zone = this.#dependsOnZone ? node.zone : ''
    let making = this.#common.get(zone)
    if (!making) {
      making = new SharedWork(commonChanges(this.steps, zone))
      this.#common.set(zone, making)
    }
    const common = making.result ?? (yield* making.finish())
    const ownSteps = this.#ownSteps.get(node.name)
    if (!ownSteps) return common
    const own: Diffs = new Map()
    for (const step of ownSteps) {
      own.set(step, step.diff(node, node))
      yield
    }
    return withOwn(common, own)
  }
}

type Diffs = Map<ServiceStep, ServiceDiff>

/** What a node is told of services and endpoints. */
interface ServiceChanges {
  readonly sets: readonly Batch<NodeItem>[]
  readonly deletes: readonly Batch<DeleteItem>[]
  readonly triggers: readonly Trigger[]
}

const toldOf = ({ services, endpoints, deletedEndpoints, deletedServices }: ServiceDiff) => ({
  sets: [...services, ...endpoints],
  deletes: [...deletedEndpoints, ...deletedServices],
})

interface CommonChanges extends ServiceChanges {
  readonly diffs: Diffs
  readonly all: ServiceDiff
}

/** What the nodes of a zone are told that see every step as the others do. */
function* commonChanges(steps: readonly ServiceStep[], zone: string): Work<CommonChanges> {
  const diffs: Diffs = new Map()
  for (const step of steps) diffs.set(step, yield* step.common(zone))
  const { services, endpoints, deletedEndpoints, deletedServices } = diffOfAll([...diffs.values()])
  const all = {
    services: inOneBatch(services),
    endpoints: inOneBatch(endpoints),
    deletedEndpoints: inOneBatch(deletedEndpoints),
    deletedServices: inOneBatch(deletedServices),
  }
  return { diffs, all, ...toldOf(all), triggers: triggersOf(diffs) }
}

/** What a node is told that sees some steps in its own way. The services themselves are the same to all nodes: only endpoints differ. */
function withOwn({ diffs, all, triggers }: CommonChanges, own: Diffs): ServiceChanges {
  const others = diffOfAll([...own.keys()].map((step) => diffs.get(step) as ServiceDiff))
  const { endpoints, deletedEndpoints } = diffOfAll([...own.values()])
  const isToldTheSame = [...own].every(([step, diff]) => isEmpty(diff) === isEmpty(diffs.get(step) as ServiceDiff))
  return {
    ...toldOf({
      ...all,
      endpoints: [...without(all.endpoints, others.endpoints), ...endpoints],
      deletedEndpoints: [...without(all.deletedEndpoints, others.deletedEndpoints), ...deletedEndpoints],
    }),
    triggers: isToldTheSame ? triggers : triggersOf(new Map([...diffs, ...own])),
  }
}

const triggersOf = (diffs: Diffs): readonly Trigger[] =>
  [...diffs].flatMap(([{ trigger }, diff]) => (trigger && !isEmpty(diff) ? trigger : none))

/** What one node should do, as change sets. */
export class NodeWatch extends Watch<NodeItem> {
  readonly #views: NodeViews
  readonly #nodeName: string
  readonly #withNode: boolean
  readonly #withServiceCidrs: boolean

  constructor(store: Store, turns: Turns, views: NodeViews, { nodeName, extraSets = [], from }: NodeWatchOptions) {
    super(store, turns, from)
    this.#views = views
    this.#nodeName = nodeName
    this.#withNode = extraSets.includes(localv1.Set.NODES)
    this.#withServiceCidrs = extraSets.includes(localv1.Set.SERVICE_CIDRS)
  }

  protected *everything(): Work<WholeState<NodeItem>> {
    const node = this.store.node(this.#nodeName)
    const head: NodeItem[] = []
    if (this.#withNode && node) head.push(nodeItem(node))
    if (this.#withServiceCidrs) head.push(...[...this.store.serviceCidrs.values()].map(serviceCidrItem))
    const snapshot = yield* this.#views.snapshot(this.store.entries())
    return yield* snapshot.of(topologyOf(this.#nodeName, node), head)
  }

  protected *changes(range: ChangeRange): Work<ChangeSet<NodeItem> | undefined> {
    const own = range.nodes.get(this.#nodeName)
    const now = topologyOf(this.#nodeName, this.store.node(this.#nodeName))
    const then = own ? topologyOf(this.#nodeName, own.before) : now
    // The store may move on while this is worked out in turns.
    const entries = then.zone === now.zone ? none : this.store.entries()
    const making = this.#views.changes(range)
    const changes = making.result ?? (yield* making.finish())
    if (then.zone === now.zone) return this.#assemble(range, yield* changes.of(now))
    const steps = [...changes.steps]
    for (const entry of entries) {
      yield
      if (range.services.has(entry.path) || !this.#views.services.of(entry)?.dependsOnZone) continue
      steps.push(yield* this.#views.step(entry.path, { before: entry, after: entry }))
    }
    const diffs: Diffs = new Map()
    for (const step of steps) {
      diffs.set(step, step.diff(then, now))
      yield
    }
    return this.#assemble(range, { ...toldOf(diffOfAll([...diffs.values()])), triggers: triggersOf(diffs) })
  }

  /** Nodes and CIDRs stand alone: they come before everything that is set and go after everything that is deleted. */
  #assemble(range: ChangeRange, { sets, deletes, triggers }: ServiceChanges): ChangeSet<NodeItem> | undefined {
    const node = this.#withNode && range.nodes.get(this.#nodeName)
    const hasCidrs = this.#withServiceCidrs && range.serviceCidrs.size > 0
    // Most are told the same, and what is made of these lists can be shared.
    if (!node && !hasCidrs) return this.changeSet(range, sets, deletes, triggers)
    const head: NodeItem[] = []
    const tail: DeleteItem[] = []
    if (node) collect([[this.#nodeName, node]], localv1.Set.NODES, nodeItem, head, tail)
    if (hasCidrs) collect(range.serviceCidrs, localv1.Set.SERVICE_CIDRS, serviceCidrItem, head, tail)
    return this.changeSet(range, [...batchOf(head), ...sets], [...deletes, ...batchOf(tail)], triggers)
  }
}
