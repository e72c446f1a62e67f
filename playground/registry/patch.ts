import { apiVersionOf, type Kind } from '../kinds/kind.js'
import { clone } from '../objects/json.js'
import { isObject, type JsonObject, type KubeObject } from '../objects/types.js'
import { serverSideApply } from '../patch/apply.js'
import { jsonPatch } from '../patch/json-patch.js'
import type { Writer } from '../patch/managed-fields.js'
import { mergePatch } from '../patch/merge.js'
import { strategicPatch } from '../patch/strategic.js'
import { definitions } from '../schema/definitions.js'
import { badRequest, invalid, unsupportedMediaType } from '../status/status.js'
import { requiredValue } from '../validation/causes.js'
import { decode, type FieldValidation } from './decode.js'
import type { ObjectName, Registry, WriteOptions } from './registry.js'

export const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
] as const

interface PatchOptions extends WriteOptions {
  body: unknown
  contentType: string
  fieldValidation: FieldValidation
  force: boolean
}

interface PatchResult {
  object: KubeObject
  created: boolean
  warnings: string[]
}

/** Changes a part of an object, in the way the content type says. */
export function patchObject(registry: Registry, target: ObjectName, options: PatchOptions): PatchResult {
  if (options.contentType === 'application/apply-patch+yaml') return applyObject(registry, target, options)
  const { kind, namespace, name } = target
  const stored = registry.get(kind, namespace, name)
  const live = kind.storedAs ? kind.storedAs.fromStored(stored) : stored
  const patched = patchedBy(options.contentType, live, options.body, kind)
  const { object, warnings } = decode(kind, clone(patched), options.fieldValidation)
  return { object: registry.update(kind, namespace, name, object, options), created: false, warnings }
}

function patchedBy(contentType: string, live: KubeObject, body: unknown, kind: Kind): unknown {
  switch (contentType) {
    case 'application/json-patch+json':
      return jsonPatch(live, body)
    case 'application/merge-patch+json':
      if (!isObject(body)) throw badRequest('a merge patch must be an object')
      return mergePatch(live, body)
    case 'application/strategic-merge-patch+json':
      if (!isObject(body)) throw badRequest('a strategic merge patch must be an object')
      return strategicPatch(live, body, definitions.get(kind.type))
    default:
      throw unsupportedMediaType(patchTypes)
  }
}

function applyObject(registry: Registry, { kind, namespace, name }: ObjectName, options: PatchOptions): PatchResult {
  if (!options.fieldManager) {
    const cause = requiredValue('fieldManager', 'is required for apply patch')
    throw invalid('meta.k8s.io', 'PatchOptions', '', [cause])
  }
  const { object: config, warnings } = decode(kind, clone(options.body), options.fieldValidation)
  if (config.metadata.managedFields) throw badRequest('metadata.managedFields must be nil')
  config.metadata.name ??= name
  if (options.subresource !== 'status' && kind.hasStatus) delete config.status
  const writer: Writer = {
    manager: options.fieldManager,
    operation: 'Apply',
    subresource: options.subresource ?? '',
    apiVersion: apiVersionOf(kind),
  }
  const definition = definitions.get(kind.type)
  const stored = registry.find(kind, namespace, name)
  if (!stored) {
    const nothing: KubeObject = { apiVersion: config.apiVersion, kind: config.kind, metadata: { name } }
    const { track } = serverSideApply(nothing, config as JsonObject, definition, writer, true)
    return { object: registry.create(kind, namespace, config, { ...options, track }), created: true, warnings }
  }
  const live = kind.storedAs ? kind.storedAs.fromStored(stored) : stored
  const { resourceVersion } = config.metadata
  const { merged, track } = serverSideApply(live, config as JsonObject, definition, writer, options.force)
  if (!resourceVersion) delete merged.metadata.resourceVersion
  return { object: registry.update(kind, namespace, name, merged, { ...options, track }), created: false, warnings }
}
