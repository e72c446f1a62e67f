import { type globalv1, localv1, zoneLabel } from '@kpng/api'
import { type Bookmark, type Changed, type ChangeRange, none, type ServiceEntry, type Store } from '../store/index.js'
import type { ChangeSet, Trigger, WholeState } from './change-set.js'
import { collect, isEmpty, type ServiceDiff, ServiceDiffs } from './diff.js'
import { type Batch, batchOf, type DeleteItem, type NodeItem, nodeItem, serviceCidrItem } from './items.js'
import { NodeSnapshot } from './node-snapshot.js'
import type { NodeTopology } from './selection.js'
import { bitOf, type ServiceView, ServiceViews } from './service-view.js'
import { type Turns, Watch } from './watch.js'
import { shared, type Work } from './work.js'

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
  readonly #steps = new WeakMap<ChangeRange, readonly ServiceStep[]>()
  /** Kept as long as somebody starts from it. */
  #snapshot:
    | WeakRef<{ readonly entries: readonly ServiceEntry[]; readonly make: () => Work<NodeSnapshot> }>
    | undefined;

  /** All services of one revision. Many watchers start at once after a restart: it is worked out once for them. */
  *snapshot(entries: readonly ServiceEntry[]): Work<NodeSnapshot> {
    let known = this.#snapshot?.deref()
    if (known?.entries !== entries) {
      known = { entries, make: shared(NodeSnapshot.make(entries, this.services)) }
      this.#snapshot = new WeakRef(known)
    }
    return yield* known.make()
  }

  /** The services that changed, prepared for all watchers that are told of this range. */
  stepsOf(range: ChangeRange): readonly ServiceStep[] {
    let steps = this.#steps.get(range)
    if (!steps) {
      steps = [...range.services].map(([path, change]) => this.step(path, change))
      this.#steps.set(range, steps)
    }
    return steps
  }

  step(path: string, change: Changed<ServiceEntry>): ServiceStep {
    return new ServiceStep(path, change, this.services, this.#diffs)
  }
}

/** The change of one service, or of the zone from which it is seen. What it is to most nodes is worked out once. */
class ServiceStep {
  readonly trigger: Trigger | undefined
  readonly #change: Changed<ServiceEntry>
  readonly #views: ServiceViews
  readonly #diffs: ServiceDiffs
  #before: ServiceView | undefined
  #after: ServiceView | undefined
  /** What nodes are told whose own endpoints did not change, if there are no hints. */
  #common: ServiceDiff | undefined
  /** The nodes whose own endpoints changed; the bits of those that have any where that is not known. */
  #changedNodes: ReadonlySet<string> | undefined
  #nodeBits = 0
  isPrepared = false

  constructor(path: string, change: Changed<ServiceEntry>, views: ServiceViews, diffs: ServiceDiffs) {
    const { triggerUnixMs } = change
    this.trigger = triggerUnixMs === undefined ? undefined : { service: path, unixMs: triggerUnixMs }
    this.#change = change
    this.#views = views
    this.#diffs = diffs
  }

  /** What a node is told, which may have changed its zone. Call `prepare` first. */
  diff(nodeBefore: NodeTopology, nodeAfter: NodeTopology): ServiceDiff {
    const { name } = nodeAfter
    if (this.#changedNodes ? this.#changedNodes.has(name) : !this.#common || this.#nodeBits & bitOf(name)) {
      const before = this.#before?.of(nodeBefore)
      return this.#diffs.between(before, this.#after?.of(nodeAfter, before?.shared))
    }
    return this.#common ?? this.#diffWithoutOwn(nodeBefore, nodeAfter)
  }

  /** Works out what it is to most nodes. A watcher that needs it meanwhile continues from what is done. */
  *prepare(): Work<void> {
    this.#before = yield* this.#views.make(this.#change.before)
    this.#after = yield* this.#views.make(this.#change.after, this.#before)
    yield
    this.#nodeBits = (this.#before?.nodeBits ?? 0) | (this.#after?.nodeBits ?? 0)
    if (!this.#before?.hasHints && !this.#after?.hasHints) {
      // The views keep what they are asked for.
      const before = this.#before?.withoutOwn(nobody)
      yield
      this.#after?.withoutOwn(nobody, before?.shared)
      yield
      this.#common = this.#diffWithoutOwn(nobody, nobody)
    }
    yield
    this.#changedNodes = this.#after?.nodesChangedSince(this.#before)
    this.isPrepared = true
  }

  #diffWithoutOwn(nodeBefore: NodeTopology, nodeAfter: NodeTopology): ServiceDiff {
    const before = this.#before?.withoutOwn(nodeBefore)
    return this.#diffs.between(before, this.#after?.withoutOwn(nodeAfter, before?.shared))
  }
}

const nobody: NodeTopology = { name: '', zone: '' }

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
    const unchanged =
      then.zone === now.zone ? none : this.store.entries().filter(({ path }) => !range.services.has(path))
    const diffs: ServiceDiff[] = []
    const triggers: Trigger[] = []
    for (const step of this.#views.stepsOf(range)) {
      if (!step.isPrepared) yield* step.prepare()
      const diff = step.diff(then, now)
      yield
      if (isEmpty(diff)) continue
      diffs.push(diff)
      if (step.trigger) triggers.push(step.trigger)
    }
    for (const entry of unchanged) {
      yield
      if (!this.#views.services.of(entry)?.dependsOnZone) continue
      const step = this.#views.step(entry.path, { before: entry, after: entry })
      yield* step.prepare()
      const diff = step.diff(then, now)
      if (!isEmpty(diff)) diffs.push(diff)
    }
    return this.#assemble(range, diffs, triggers)
  }

  /** Nodes and CIDRs stand alone: they come before everything that is set and go after everything that is deleted. */
  #assemble(
    range: ChangeRange,
    diffs: readonly ServiceDiff[],
    triggers: readonly Trigger[],
  ): ChangeSet<NodeItem> | undefined {
    const head: NodeItem[] = []
    const tail: DeleteItem[] = []
    const node = range.nodes.get(this.#nodeName)
    if (this.#withNode && node) collect([[this.#nodeName, node]], localv1.Set.NODES, nodeItem, head, tail)
    if (this.#withServiceCidrs) collect(range.serviceCidrs, localv1.Set.SERVICE_CIDRS, serviceCidrItem, head, tail)
    const sets: Batch<NodeItem>[] = [...batchOf(head)]
    const deletes: Batch<DeleteItem>[] = []
    for (const { services } of diffs) sets.push(...services)
    for (const { endpoints } of diffs) sets.push(...endpoints)
    for (const { deletedEndpoints } of diffs) deletes.push(...deletedEndpoints)
    for (const { deletedServices } of diffs) deletes.push(...deletedServices)
    deletes.push(...batchOf(tail))
    return this.changeSet(range, sets, deletes, triggers)
  }
}
