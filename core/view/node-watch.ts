import { type globalv1, type localv1, zoneLabel } from '@kpng/api'
import {
  type Changed,
  type ChangeRange,
  none,
  type ServiceEntry,
  type Store,
  sameMessage,
  type Timeline,
  type Trigger,
} from '../store/index.js'
import { SharedWork, Turns, Watch, type Work } from './schedule.js'
import type { NodeTopology } from './selection.js'
import { type ServiceChange, ServiceComparison, ServiceStep, wholeService } from './service-change.js'
import { type ServiceView, ServiceViews } from './service-view.js'

/** What changes for one node. If nothing is its own, it is the same object for all nodes of the zone. */
export interface NodeChange {
  readonly revision: number
  /** The whole view: what the node knew before is void. */
  readonly isWhole: boolean
  /** The Services as most nodes of the zone see them: the same array for all of them. */
  readonly common: readonly ServiceChange[]
  /** Those of them that this node sees in its own way, and how. */
  readonly own: ReadonlyMap<ServiceChange, ServiceChange>
  /** The node itself; undefined if it is as it was. */
  readonly node: Changed<globalv1.Node> | undefined
  /** By name. */
  readonly serviceCidrs: ReadonlyMap<string, Changed<localv1.ServiceCIDR>>
  readonly triggers: readonly Trigger[]
  /** Where the time went so far; not for the whole view. */
  readonly timeline: Timeline | undefined
}

/** The Services that change for this node. */
export function* servicesOf({ common, own }: NodeChange): Generator<ServiceChange> {
  for (const change of common) {
    const seen = own.get(change) ?? change
    if (!seen.isEmpty) yield seen
  }
}

export interface NodeWatchOptions {
  readonly nodeName: string
}

/** A node that nobody knows, or whose zone is not set, still has a view. */
export const topologyOf = (name: string, node: globalv1.Node | undefined): NodeTopology => ({
  name,
  zone: node?.topology?.zone || (node?.labels[zoneLabel] ?? ''),
})

/** With more services than these whose hints name nodes, too few nodes are alike: then each is looked at by itself. */
const fewHinted = 8

/** How many nodes are looked at before others may come in between. */
const nodesAtOnce = 256

/** What the nodes see of a store, worked out once for all watchers: the views of its services, and what changes make of them. */
export class NodeViews {
  readonly #services = new ServiceViews()
  readonly #comparison = new ServiceComparison()
  /** Kept as long as the range, which is until the store changes again. */
  readonly #changes = new WeakMap<ChangeRange, SharedWork<ChangesByNode>>()
  /** Kept as long as somebody starts from it. */
  #snapshot: WeakRef<{ readonly entries: readonly ServiceEntry[]; readonly making: SharedWork<Snapshot> }> | undefined;

  /** All services of one revision. Many watchers start at once after a restart: it is worked out once for them. */
  *snapshot(entries: readonly ServiceEntry[]): Work<Snapshot> {
    let known = this.#snapshot?.deref()
    if (known?.entries !== entries) {
      known = { entries, making: new SharedWork(this.#makeSnapshot(entries)) }
      this.#snapshot = new WeakRef(known)
    }
    return yield* known.making.finish()
  }

  /** What changed, for all watchers that are told of this range. */
  changes(range: ChangeRange): SharedWork<ChangesByNode> {
    let making = this.#changes.get(range)
    if (!making) {
      making = new SharedWork(this.#makeChanges(range))
      this.#changes.set(range, making)
    }
    return making
  }

  view(entry: ServiceEntry): Work<ServiceView | undefined> {
    return this.#services.make(entry)
  }

  step(path: string, change: Changed<ServiceEntry>): Work<ServiceStep> {
    return ServiceStep.make(path, change, this.#services, this.#comparison)
  }

  *#makeSnapshot(entries: readonly ServiceEntry[]): Work<Snapshot> {
    const views: ServiceView[] = []
    const ownOf = new Map<string, ServiceView[]>()
    for (const entry of entries) {
      const view = yield* this.#services.make(entry)
      yield
      if (!view) continue
      views.push(view)
      for (const node of view.nodes()) {
        const own = ownOf.get(node)
        if (!own) ownOf.set(node, [view])
        else if (own.at(-1) !== view) own.push(view)
      }
    }
    return new Snapshot(views, ownOf)
  }

  *#makeChanges({ services, revision, receivedAtMs, committedAtMs }: ChangeRange): Work<ChangesByNode> {
    const timeline = { revision, receivedAtMs, committedAtMs }
    const steps: ServiceStep[] = []
    for (const [path, change] of services) steps.push(yield* this.step(path, change))
    const ownSteps = new Map<string, Set<ServiceStep>>()
    const hinted = steps.filter(({ hasNodeHints }) => hasNodeHints)
    const areManyHinted = hinted.length > fewHinted
    for (const step of steps) {
      let count = 0
      for (const node of step.ownNodes(areManyHinted)) {
        const own = ownSteps.get(node)
        if (own) own.add(step)
        else ownSteps.set(node, new Set([step]))
        if (++count % nodesAtOnce === 0) yield
      }
      yield
    }
    return new ChangesByNode(steps, areManyHinted ? none : hinted, ownSteps, timeline)
  }
}

const noOwn: ReadonlyMap<ServiceChange, ServiceChange> = new Map()

/**
 * All services at one revision, for watchers that start. Most of what two nodes see is the same: it is put together once for all
 * nodes of a zone, and each node gets what is its own instead of the part that is not.
 */
class Snapshot {
  readonly #views: readonly ServiceView[]
  /** The services that a node sees in its own way: it runs endpoints of them, or some are meant for it. */
  readonly #ownOf: ReadonlyMap<string, readonly ServiceView[]>
  readonly #dependsOnZone: boolean
  readonly #common = new Map<string, SharedWork<CommonState>>()

  constructor(views: readonly ServiceView[], ownOf: ReadonlyMap<string, readonly ServiceView[]>) {
    this.#views = views
    this.#ownOf = ownOf
    this.#dependsOnZone = views.some(({ dependsOnZone }) => dependsOnZone)
  }

  *of(node: NodeTopology): Work<Pick<NodeChange, 'common' | 'own'>> {
    const zone = this.#dependsOnZone ? node.zone : ''
    const all = yield* onceFor(this.#common, zone, () => this.#all(zone))
    const own = new Map<ServiceChange, ServiceChange>()
    for (const view of this.#ownOf.get(node.name) ?? none) {
      own.set(all.of.get(view) as ServiceChange, wholeService(view.of(node)))
    }
    return { common: all.common, own }
  }

  /** What a node sees that runs nothing. */
  *#all(zone: string): Work<CommonState> {
    const of = new Map<ServiceView, ServiceChange>()
    for (const view of this.#views) {
      of.set(view, wholeService(view.withoutOwn({ name: '', zone })))
      yield
    }
    return { of, common: [...of.values()] }
  }
}

interface CommonState {
  readonly common: readonly ServiceChange[]
  readonly of: ReadonlyMap<ServiceView, ServiceChange>
}

/** The services that changed, as the nodes see them. */
class ChangesByNode {
  readonly steps: readonly ServiceStep[]
  readonly timeline: Timeline
  /** The steps that a node may see in its own way. */
  readonly #ownSteps: ReadonlyMap<string, ReadonlySet<ServiceStep>>
  /** Those with hints that name nodes: each node whose name they know is like others whose names they know. */
  readonly #hinted: readonly ServiceStep[]
  readonly #dependsOnZone: boolean
  /** By zone, and by which steps have hints that name the node. */
  readonly #common = new Map<string, SharedWork<CommonChange>>()

  constructor(
    steps: readonly ServiceStep[],
    hinted: readonly ServiceStep[],
    ownSteps: ReadonlyMap<string, ReadonlySet<ServiceStep>>,
    timeline: Timeline,
  ) {
    this.steps = steps
    this.#hinted = hinted
    this.#ownSteps = ownSteps
    this.timeline = timeline
    this.#dependsOnZone = steps.some((step) => step.dependsOnZone)
  }

  /** What changes for a node that stays in its zone. */
  *of(node: NodeTopology): Work<CommonChange> {
    const kind = this.#kindOf(node)
    const all = this.#common.get(kind)?.result ?? (yield* onceFor(this.#common, kind, () => this.#all(node)))
    const ownSteps = this.#ownSteps.get(node.name)
    if (!ownSteps) return all
    const own = new Map<ServiceChange, ServiceChange>()
    let isAlike = true
    for (const step of ownSteps) {
      const common = all.of.get(step) as ServiceChange
      const seen = step.of(node, node)
      own.set(common, seen)
      isAlike &&= seen.isEmpty === common.isEmpty
      yield
    }
    const { isEmpty, change } = isAlike
      ? all
      : together(
          [...all.of].map(([step, one]) => [step, own.get(one) ?? one]),
          this.timeline,
        )
    return { of: all.of, isEmpty, change: { ...change, common: all.change.common, own } }
  }

  #kindOf({ name, zone }: NodeTopology): string {
    let kind = this.#dependsOnZone ? zone : ''
    for (const step of this.#hinted) kind += ` ${step.namedBy(name)}`
    return kind
  }

  /** What changes for nodes that see every step as others of their kind do. */
  *#all(node: NodeTopology): Work<CommonChange> {
    const changes: [ServiceStep, ServiceChange][] = []
    const nobody = { name: '', zone: node.zone }
    for (const step of this.steps) changes.push([step, yield* step.common(this.#hinted.includes(step) ? node : nobody)])
    return together(changes, this.timeline)
  }
}

/** What the nodes of a zone are told alike. */
interface CommonChange {
  readonly of: ReadonlyMap<ServiceStep, ServiceChange>
  readonly isEmpty: boolean
  readonly change: NodeChange
}

function together(changes: readonly (readonly [ServiceStep, ServiceChange])[], timeline: Timeline): CommonChange {
  const { revision } = timeline
  const common = changes.map(([, change]) => change)
  const triggers = changes.flatMap(([{ trigger }, { isEmpty }]) => (trigger && !isEmpty ? trigger : none))
  const [node, serviceCidrs] = [undefined, noCidrs]
  const change = { revision, isWhole: false, common, own: noOwn, node, serviceCidrs, triggers, timeline }
  return { of: new Map(changes), isEmpty: common.every(({ isEmpty }) => isEmpty), change }
}

const noCidrs: NodeChange['serviceCidrs'] = new Map()

/** What is put together once for all nodes of a kind. */
function* onceFor<T>(known: Map<string, SharedWork<T>>, kind: string, make: () => Work<T>): Work<T> {
  let making = known.get(kind)
  if (!making) {
    making = new SharedWork(make())
    known.set(kind, making)
  }
  return yield* making.finish()
}

/** What one node should do, in the form in which the watcher is told it. */
export class NodeWatch<Form = NodeChange> extends Watch<Form> {
  readonly #views: NodeViews
  readonly #nodeName: string
  readonly #form: (change: NodeChange) => Work<Form | undefined>

  constructor(
    [store, turns, views]: readonly [Store, Turns, NodeViews],
    { nodeName }: NodeWatchOptions,
    form: (change: NodeChange) => Work<Form | undefined>,
  ) {
    super(store, turns)
    this.#views = views
    this.#nodeName = nodeName
    this.#form = form
  }

  protected *everything(revision: number): Work<Form | undefined> {
    const now = this.store.node(this.#nodeName)
    const node = now && { before: undefined, after: now }
    const serviceCidrs = new Map(
      [...this.store.serviceCidrs].map(([name, after]) => [name, { before: undefined, after }]),
    )
    const snapshot = yield* this.#views.snapshot(this.store.entries())
    const told = yield* snapshot.of(topologyOf(this.#nodeName, now))
    const [triggers, timeline] = [none, undefined]
    return yield* this.#form({ ...told, revision, isWhole: true, node, serviceCidrs, triggers, timeline })
  }

  protected *changes(range: ChangeRange): Work<Form | undefined> {
    const own = range.nodes.get(this.#nodeName)
    const now = topologyOf(this.#nodeName, this.store.node(this.#nodeName))
    const then = own ? topologyOf(this.#nodeName, own.before) : now
    // The store may move on while this is worked out in turns.
    const entries = then.zone === now.zone ? none : this.store.entries()
    const making = this.#views.changes(range)
    const changes = making.result ?? (yield* making.finish())
    const { isEmpty, change } =
      then.zone === now.zone ? yield* changes.of(now) : yield* this.#moved(then, now, changes, entries)
    const node = own && !sameMessage(own.before, own.after) ? own : undefined
    const serviceCidrs = range.serviceCidrs.size === 0 ? noCidrs : different(range.serviceCidrs)
    if (!node && serviceCidrs.size === 0) return isEmpty ? undefined : yield* this.#form(change)
    return yield* this.#form({ ...change, node, serviceCidrs })
  }

  /** The node changed its zone: services that did not change may look different from there. */
  *#moved(
    then: NodeTopology,
    now: NodeTopology,
    { steps: changed, timeline }: ChangesByNode,
    entries: readonly ServiceEntry[],
  ): Work<CommonChange> {
    const steps = [...changed]
    const paths = new Set(steps.map(({ path }) => path))
    for (const entry of entries) {
      yield
      if (paths.has(entry.path) || !(yield* this.#views.view(entry))?.dependsOnZone) continue
      steps.push(yield* this.#views.step(entry.path, { before: entry, after: entry }))
    }
    const changes: [ServiceStep, ServiceChange][] = []
    for (const step of steps) {
      changes.push([step, step.of(then, now)])
      yield
    }
    return together(changes, timeline)
  }
}

/** Without what changed and changed back. */
function different<T>(changes: ReadonlyMap<string, Changed<T>>): ReadonlyMap<string, Changed<T>> {
  return new Map([...changes].filter(([, { before, after }]) => !sameMessage(before, after)))
}

/** What is worked out from one store, once for all who watch it. Make one per store. */
export class View {
  readonly store: Store
  /** For code that does much for many watchers, such as sending. */
  readonly turns: Turns
  readonly #nodes = new NodeViews()

  constructor(store: Store, turns = new Turns()) {
    this.store = store
    this.turns = turns
  }

  /** Watches what one node should do. */
  watchNode(options: NodeWatchOptions): NodeWatch
  /** @param form makes of a change what the watcher is told; undefined: nothing */
  watchNode<Form>(options: NodeWatchOptions, form: (change: NodeChange) => Work<Form | undefined>): NodeWatch<Form>
  watchNode(options: NodeWatchOptions, form: (change: NodeChange) => Work<unknown> = asItIs): NodeWatch<unknown> {
    return new NodeWatch([this.store, this.turns, this.#nodes], options, form)
  }
}

// biome-ignore lint/correctness/useYield: there is nothing to do
function* asItIs(change: NodeChange): Work<NodeChange> {
  return change
}
