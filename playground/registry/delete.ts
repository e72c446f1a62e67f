import { type Kind, resourceOf } from '../kinds/kind.js'
import { clone } from '../objects/json.js'
import type { Namespace, Pod } from '../objects/kinds.js'
import { timestamp } from '../objects/time.js'
import { type KubeObject, keyOf } from '../objects/types.js'
import { conflict, forbidden } from '../status/status.js'
import type { Registry } from './registry.js'

export interface DeleteOptions {
  gracePeriodSeconds?: number
  propagationPolicy?: 'Orphan' | 'Background' | 'Foreground'
  preconditions?: { uid?: string; resourceVersion?: string }
  dryRun?: boolean
  /** No graceful deletion takes longer than this. */
  maxGracePeriodSeconds?: number
}

export interface Deletion {
  /** The object as it last was. */
  object: KubeObject
  /** False: it is only marked, and goes when its grace period, its finalizers or its content are gone. */
  gone: boolean
}

function checkPreconditions(kind: Kind, { metadata }: KubeObject, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions ?? {}
  if (uid !== undefined && uid !== metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`
    throw conflict(kind, metadata.name, why)
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const why = `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${metadata.resourceVersion}`
    throw conflict(kind, metadata.name, why)
  }
}

/** How long the object may still live; zero for what was never started. */
function graceOf(kind: Kind, object: KubeObject, options: DeleteOptions): number {
  if (!kind.strategy.gracePeriodSeconds) return 0
  const { spec, status } = object as Pod
  if (!spec.nodeName || status?.phase === 'Failed' || status?.phase === 'Succeeded') return 0
  const wanted = options.gracePeriodSeconds ?? kind.strategy.gracePeriodSeconds(object)
  return Math.max(0, Math.min(wanted, options.maxGracePeriodSeconds ?? Number.POSITIVE_INFINITY))
}

export function deleteObject(
  registry: Registry,
  kind: Kind,
  namespace: string | undefined,
  name: string,
  options: DeleteOptions = {},
): Deletion {
  const object = registry.get(kind, namespace, name)
  checkPreconditions(kind, object, options)
  const refusal = kind.strategy.refuseDeletion?.(object)
  if (refusal) throw forbidden(kind, name, refusal)
  const key = keyOf(namespace, name)
  const resource = resourceOf(kind)
  if (options.dryRun) return { object, gone: true }
  if (options.propagationPolicy === 'Orphan') orphanDependents(registry, object)
  const grace = graceOf(kind, object, options)
  const holds =
    (object.metadata.finalizers?.length ?? 0) > 0 || ((object as Namespace).spec?.finalizers?.length ?? 0) > 0
  if (grace === 0 && !holds) return { object: registry.store.remove(resource, key)?.object ?? object, gone: true }
  const already = object.metadata.deletionGracePeriodSeconds
  if (object.metadata.deletionTimestamp && already !== undefined && already <= grace) return { object, gone: false }
  return { object: registry.store.put(resource, key, marked(object, grace)).object, gone: false }
}

function marked(object: KubeObject, graceSeconds: number): KubeObject {
  const copy = clone(object)
  copy.metadata.deletionTimestamp = timestamp(Date.now() + graceSeconds * 1000)
  copy.metadata.deletionGracePeriodSeconds = graceSeconds
  if (copy.kind === 'Namespace') (copy as Namespace).status = { ...(copy as Namespace).status, phase: 'Terminating' }
  if (copy.metadata.generation !== undefined) copy.metadata.generation += 1
  return copy
}

/** `--cascade=orphan`: what the object owned stays, without owner. */
function orphanDependents(registry: Registry, owner: KubeObject): void {
  for (const { resource, stored } of [...registry.store.entries()]) {
    const references = stored.object.metadata.ownerReferences ?? []
    if (!references.some(({ uid }) => uid === owner.metadata.uid)) continue
    const copy = clone(stored.object) as KubeObject
    copy.metadata.ownerReferences = references.filter(({ uid }) => uid !== owner.metadata.uid)
    registry.store.put(resource, stored.key, copy)
  }
}
