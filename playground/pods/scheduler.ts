import { type Controller, type ControllerContext, splitKey } from '../controllers/controller.js'
import { WorkQueue } from '../controllers/work-queue.js'
import { clone, equal } from '../objects/json.js'
import type { Node, Pod } from '../objects/kinds.js'
import { matchesAll } from '../selectors/labels.js'
import type { Store } from '../storage/store.js'
import { scheduledCondition } from './pod-status.js'

interface Toleration {
  key?: string
  operator?: string
  value?: string
  effect?: string
}

function tolerates(pod: Pod, { spec }: Node): boolean {
  const tolerations = (pod.spec as { tolerations?: Toleration[] }).tolerations ?? []
  return (spec?.taints ?? [])
    .filter(({ effect }) => effect !== 'PreferNoSchedule')
    .every((taint) =>
      tolerations.some(
        ({ key, operator, value = '', effect }) =>
          (!effect || effect === taint.effect) &&
          (!key || key === taint.key) &&
          (operator === 'Exists' || value === (taint.value ?? '')),
      ),
    )
}

const isReady = ({ status }: Node): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false

/** The node for a pod: one that fits and has the fewest pods; undefined when none fits. A pure function. */
export function chooseNode(pod: Pod, nodes: readonly Node[], podsOn: (node: string) => number): string | undefined {
  const fitting = nodes.filter(
    (node) =>
      isReady(node) &&
      !node.spec?.unschedulable &&
      !node.metadata.deletionTimestamp &&
      tolerates(pod, node) &&
      matchesAll(pod.spec.nodeSelector ?? {}, node.metadata.labels),
  )
  const ranked = fitting.map(({ metadata }) => ({ name: metadata.name, pods: podsOn(metadata.name) }))
  return ranked.sort((a, b) => a.pods - b.pods || (a.name < b.name ? -1 : 1))[0]?.name
}

/** Gives each pod without a node one. */
export class Scheduler implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: (() => void)[]
  readonly #store: Store
  readonly #context: ControllerContext

  constructor(context: ControllerContext) {
    this.#context = context
    this.#store = context.registry.store
    this.#queue = new WorkQueue('scheduler', (key) => this.#schedule(key), context.log)
    const waiting = () => {
      for (const { key, object } of this.#store.list('pods')) if (!(object as Pod).spec.nodeName) this.#queue.add(key)
    }
    this.#leave = [
      this.#store.subscribe('pods', ({ key, after, deleted }) => {
        if (!deleted && !(after.object as Pod).spec.nodeName) this.#queue.add(key)
      }),
      this.#store.subscribe('nodes', waiting),
    ]
    waiting()
  }

  #schedule(key: string): void {
    const pod = this.#store.get('pods', key)?.object as Pod | undefined
    if (!pod || pod.spec.nodeName || pod.metadata.deletionTimestamp) return
    const nodes = this.#store.list('nodes').map(({ object }) => object as Node)
    const counts = new Map<string, number>()
    for (const { object } of this.#store.list('pods')) {
      const node = (object as Pod).spec.nodeName
      if (node) counts.set(node, (counts.get(node) ?? 0) + 1)
    }
    const node = chooseNode(pod, nodes, (name) => counts.get(name) ?? 0)
    const { name, namespace } = splitKey(key)
    const placed = clone(pod)
    const message = `0/${nodes.length} nodes are available: none is ready, schedulable and matches the pod.`
    placed.status = { ...placed.status, conditions: scheduledCondition(pod, node !== undefined, message) }
    if (node !== undefined) placed.spec.nodeName = node
    if (equal(placed, pod)) return
    this.#store.put('pods', key, placed)
    if (node === undefined)
      this.#context.events.record(pod, 'Warning', 'FailedScheduling', message, 'default-scheduler')
    else {
      const done = `Successfully assigned ${namespace}/${name} to ${node}`
      this.#context.events.record(pod, 'Normal', 'Scheduled', done, 'default-scheduler')
    }
  }

  close(): void {
    for (const way of this.#leave) way()
    this.#queue.close()
  }
}
