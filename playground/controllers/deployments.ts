import { createHash } from 'node:crypto'
import { clone, equal } from '../objects/json.js'
import type { Condition, Deployment, Pod } from '../objects/kinds.js'
import { timestamp } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import { deleteObject } from '../registry/delete.js'
import { randomSuffix } from '../registry/registry.js'
import { type Controller, type ControllerContext, followAll, kindNamed, reconciler } from './controller.js'
import { isReady } from './desired-endpoints.js'

const hashLabel = 'pod-template-hash'
const resource = 'deployments.apps'

const templateHash = ({ spec }: Deployment): string =>
  createHash('sha256')
    .update(JSON.stringify(spec.template ?? {}))
    .digest('hex')
    .slice(0, 10)

/** Keeps the number of pods a Deployment asks for; it owns them directly, there are no ReplicaSets here. */
export const deploymentController = (context: ControllerContext): Controller => {
  const { store } = context.registry
  return reconciler(
    'deployments',
    context,
    (key) => reconcile(context, key),
    (queue) => [
      followAll(store, resource, queue),
      store.subscribe('pods', ({ before, after }) => {
        const { namespace, ownerReferences = [] } = (before ?? after).object.metadata
        const owner = ownerReferences.find(({ kind, controller }) => kind === 'Deployment' && controller)
        if (owner) queue.add(`${namespace}/${owner.name}`)
      }),
    ],
  )
}

function reconcile(context: ControllerContext, key: string): void {
  const { store } = context.registry
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
  if (!(deployment.spec as { paused?: boolean }).paused) scale(context, deployment, hash, current, old)
  report(context, deployment, pods, current)
}

/** New pods first; an old one goes for each new one that is ready, so that the Service never has fewer. */
function scale(context: ControllerContext, deployment: Deployment, hash: string, current: Pod[], old: Pod[]): void {
  const { registry, maxGracePeriodSeconds } = context
  const pods = kindNamed(registry, 'v1', 'Pod')
  const wanted = deployment.spec.replicas ?? 1
  for (let missing = wanted - current.length; missing > 0; missing--)
    registry.create(pods, deployment.metadata.namespace, podOf(deployment, hash))
  const surplus = [...current]
    .sort((a, b) => Number(isReady(a)) - Number(isReady(b)))
    .slice(0, Math.max(0, current.length - wanted))
  const ready = current.filter(isReady).length
  const replaced = old.slice(0, Math.max(0, old.length + Math.min(ready, wanted) - wanted))
  for (const { metadata } of [...surplus, ...replaced])
    deleteObject(registry, pods, metadata.namespace, metadata.name, { maxGracePeriodSeconds })
}

function podOf(deployment: Deployment, hash: string): KubeObject {
  const { name, uid = '' } = deployment.metadata
  const { metadata = {}, spec = {} } = deployment.spec.template ?? {}
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true, blockOwnerDeletion: true }
  return {
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
}

function report({ registry }: ControllerContext, deployment: Deployment, pods: Pod[], current: Pod[]): void {
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
  const { namespace, name } = deployment.metadata
  const kind = kindNamed(registry, 'apps/v1', 'Deployment')
  registry.update(kind, namespace, name, { ...clone(deployment), status }, { subresource: 'status' })
}
