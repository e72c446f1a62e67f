import { createHash } from 'node:crypto'
import { clone, equal } from '../objects/json.js'
import type { Condition, Deployment, Pod } from '../objects/kinds.js'
import { timestamp } from '../objects/time.js'
import { deleteObject } from '../registry/delete.js'
import { randomSuffix } from '../registry/registry.js'
import { type Controller, type ControllerContext, kindNamed, splitKey } from './controller.js'
import { isReady } from './desired-endpoints.js'
import { WorkQueue } from './work-queue.js'

const hashLabel = 'pod-template-hash'
const resource = 'deployments.apps'

const templateHash = ({ spec }: Deployment): string =>
  createHash('sha256')
    .update(JSON.stringify(spec.template ?? {}))
    .digest('hex')
    .slice(0, 10)

/** Keeps the number of pods a Deployment asks for; it owns them directly, there are no ReplicaSets here. */
export class DeploymentController implements Controller {
  readonly #queue: WorkQueue
  readonly #leave: (() => void)[]
  readonly #context: ControllerContext
  readonly #maxGracePeriodSeconds: number

  constructor(context: ControllerContext, maxGracePeriodSeconds: number) {
    this.#context = context
    this.#maxGracePeriodSeconds = maxGracePeriodSeconds
    const { store } = context.registry
    this.#queue = new WorkQueue('deployments', (key) => this.#reconcile(key), context.log)
    this.#leave = [
      store.subscribe(resource, ({ key }) => this.#queue.add(key)),
      store.subscribe('pods', ({ before, after }) => {
        const { namespace, ownerReferences = [] } = (before ?? after).object.metadata
        const owner = ownerReferences.find(({ kind, controller }) => kind === 'Deployment' && controller)
        if (owner) this.#queue.add(`${namespace}/${owner.name}`)
      }),
    ]
    for (const { key } of store.list(resource)) this.#queue.add(key)
  }

  #reconcile(key: string): void {
    const { store } = this.#context.registry
    const deployment = store.get(resource, key)?.object as Deployment | undefined
    if (!deployment || deployment.metadata.deletionTimestamp) return
    const owned = store
      .list('pods')
      .map(({ object }) => object as Pod)
      .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === deployment.metadata.uid))
    // A pod that could not listen counts: its replacement would fail too, and so on without end.
    const pods = owned.filter(({ metadata }) => !metadata.deletionTimestamp)
    const hash = templateHash(deployment)
    const current = pods.filter(({ metadata }) => metadata.labels?.[hashLabel] === hash)
    const old = pods.filter((pod) => !current.includes(pod))
    if (!(deployment.spec as { paused?: boolean }).paused) this.#scale(deployment, hash, current, old)
    this.#report(key, deployment, pods, current)
  }

  /** New pods first; an old one goes for each new one that is ready, so that the Service never has fewer. */
  #scale(deployment: Deployment, hash: string, current: Pod[], old: Pod[]): void {
    const wanted = deployment.spec.replicas ?? 1
    for (let missing = wanted - current.length; missing > 0; missing--) this.#createPod(deployment, hash)
    const surplus = [...current]
      .sort((a, b) => Number(isReady(a)) - Number(isReady(b)))
      .slice(0, Math.max(0, current.length - wanted))
    const ready = current.filter(isReady).length
    const replaced = old.slice(0, Math.max(0, old.length + Math.min(ready, wanted) - wanted))
    for (const pod of [...surplus, ...replaced]) this.#deletePod(pod)
  }

  #createPod(deployment: Deployment, hash: string): void {
    const { name, namespace, uid = '' } = deployment.metadata
    const { metadata = {}, spec = {} } = deployment.spec.template ?? {}
    const kind = kindNamed(this.#context.registry, 'v1', 'Pod')
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true, blockOwnerDeletion: true }
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...clone(metadata),
        name: `${name}-${hash}-${randomSuffix()}`,
        labels: { ...metadata.labels, [hashLabel]: hash },
        ownerReferences: [owner],
      },
      spec: clone(spec),
    }
    this.#context.registry.create(kind, namespace, pod)
  }

  #deletePod({ metadata }: Pod): void {
    const kind = kindNamed(this.#context.registry, 'v1', 'Pod')
    const maxGracePeriodSeconds = this.#maxGracePeriodSeconds
    deleteObject(this.#context.registry, kind, metadata.namespace, metadata.name, { maxGracePeriodSeconds })
  }

  #report(key: string, deployment: Deployment, pods: Pod[], current: Pod[]): void {
    const { registry } = this.#context
    const wanted = deployment.spec.replicas ?? 1
    const ready = pods.filter(isReady).length
    const available: Condition['status'] = ready >= wanted ? 'True' : 'False'
    const before = deployment.status?.conditions?.find(({ type }) => type === 'Available')
    const lastTransitionTime = before?.status === available ? before.lastTransitionTime : timestamp()
    const reason = available === 'True' ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable'
    const message =
      available === 'True' ? 'Deployment has minimum availability.' : 'Deployment does not have minimum availability.'
    const status = {
      observedGeneration: deployment.metadata.generation,
      replicas: pods.length,
      updatedReplicas: current.length,
      readyReplicas: ready,
      availableReplicas: ready,
      unavailableReplicas: Math.max(0, wanted - ready),
      conditions: [{ type: 'Available', status: available, lastTransitionTime, reason, message }],
    }
    if (equal(status, deployment.status)) return
    const { namespace, name } = splitKey(key)
    const kind = kindNamed(registry, 'apps/v1', 'Deployment')
    registry.update(kind, namespace, name, { ...clone(deployment), status }, { subresource: 'status' })
  }

  close(): void {
    for (const way of this.#leave) way()
    this.#queue.close()
  }
}
