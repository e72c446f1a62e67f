import { clone } from '../objects/json.js'
import type { Deployment } from '../objects/kinds.js'
import { isObject, type KubeObject } from '../objects/types.js'
import { labelsText } from '../selectors/labels.js'
import { badRequest } from '../status/status.js'
import type { ObjectName, Registry, WriteOptions } from './registry.js'

/** The `scale` subresource: one number of a larger object. */
export function scaleOf(object: KubeObject): KubeObject {
  const { metadata, spec, status } = object as Deployment
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: spec.replicas ?? 1 },
    status: { replicas: status?.replicas ?? 0, selector: labelsText(spec.selector?.matchLabels) },
  }
}

export function writeScale(
  registry: Registry,
  { kind, namespace, name }: ObjectName,
  scale: unknown,
  options: WriteOptions,
): KubeObject {
  const wanted = isObject(scale) && isObject(scale.spec) ? (scale.spec.replicas ?? 0) : undefined
  if (typeof wanted !== 'number')
    throw badRequest(`the Scale of ${kind.plural} "${name}" needs spec.replicas, a number`)
  const object = clone(registry.get(kind, namespace, name)) as Deployment
  const version = isObject(scale) ? (scale as KubeObject).metadata?.resourceVersion : undefined
  if (version) object.metadata.resourceVersion = version
  object.spec.replicas = wanted
  return scaleOf(registry.update(kind, namespace, name, object, options))
}
