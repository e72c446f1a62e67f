import { resourceOf } from '../kinds/kind.js'
import { isObject, type JsonObject, type KubeObject } from '../objects/types.js'
import { mergePatch } from '../patch/merge.js'
import { decode, type FieldValidation } from '../registry/decode.js'
import { type DeleteOptions, type Deletion, deleteObject } from '../registry/delete.js'
import { patchObject } from '../registry/patch.js'
import type { ObjectName, Registry, WriteOptions } from '../registry/registry.js'
import { scaleOf, writeScale } from '../registry/scale.js'
import { badRequest, invalid, methodNotAllowed, type Status } from '../status/status.js'
import { unsupportedValue } from '../validation/causes.js'
import type { Route } from './route.js'

export interface WriteRequest {
  route: Route
  query: URLSearchParams
  contentType: string
  /** For the name in managedFields when the client gives none. */
  userAgent: string
  body: unknown
}

export interface Written {
  code: number
  object: KubeObject
  warnings: string[]
}

const validations: readonly FieldValidation[] = ['Ignore', 'Warn', 'Strict']

function fieldValidation(query: URLSearchParams): FieldValidation {
  const asked = query.get('fieldValidation') || 'Warn'
  const found = validations.find((validation) => validation === asked)
  if (found) return found
  throw invalid('meta.k8s.io', 'CreateOptions', '', [unsupportedValue('fieldValidation', asked, validations)])
}

function writeOptions({ query, userAgent, route }: WriteRequest): WriteOptions {
  const dryRun = query.getAll('dryRun').includes('All')
  const fieldManager = query.get('fieldManager') || userAgent.split('/')[0]?.slice(0, 128) || 'unknown'
  return { dryRun, fieldManager, subresource: route.subresource === 'status' ? 'status' : '' }
}

function targetOf({ route: { kind, namespace, name } }: WriteRequest): ObjectName {
  if (name === undefined) throw methodNotAllowed()
  return { kind, namespace, name }
}

export function create(registry: Registry, request: WriteRequest): Written {
  const { kind, namespace, name } = request.route
  if (name !== undefined) throw methodNotAllowed()
  const { object, warnings } = decode(kind, request.body, fieldValidation(request.query))
  // A Service comes without status, a Node brings the one its kubelet knows.
  if (kind.hasStatus && kind.kind !== 'Node') delete object.status
  return { code: 201, object: registry.create(kind, namespace, object, writeOptions(request)), warnings }
}

export function replace(registry: Registry, request: WriteRequest): Written {
  const target = targetOf(request)
  const { kind, namespace, name } = target
  if (request.route.subresource === 'scale') {
    const object = writeScale(registry, target, request.body, writeOptions(request))
    return { code: 200, object, warnings: [] }
  }
  const { object, warnings } = decode(kind, request.body, fieldValidation(request.query))
  return { code: 200, object: registry.update(kind, namespace, name, object, writeOptions(request)), warnings }
}

export function patch(registry: Registry, request: WriteRequest): Written {
  const target = targetOf(request)
  const options = writeOptions(request)
  if (request.route.subresource === 'scale') {
    const scale = mergePatch(scaleOf(registry.get(target.kind, target.namespace, target.name)), request.body)
    return { code: 200, object: writeScale(registry, target, scale, options), warnings: [] }
  }
  const apply = request.contentType === 'application/apply-patch+yaml'
  if (apply && !request.query.get('fieldManager')) options.fieldManager = ''
  const { object, created, warnings } = patchObject(registry, target, {
    ...options,
    body: request.body,
    contentType: request.contentType,
    fieldValidation: fieldValidation(request.query),
    force: request.query.get('force') === 'true',
  })
  return { code: created ? 201 : 200, object, warnings }
}

/** DeleteOptions come in the body, or some of them in the query. */
function deleteOptions({ query, body }: WriteRequest, maxGracePeriodSeconds: number): DeleteOptions {
  const given: JsonObject = isObject(body) ? body : {}
  const grace =
    given.gracePeriodSeconds ?? (query.has('gracePeriodSeconds') ? Number(query.get('gracePeriodSeconds')) : undefined)
  const policy = given.propagationPolicy ?? query.get('propagationPolicy') ?? undefined
  const orphan = given.orphanDependents === true ? 'Orphan' : undefined
  if (policy !== undefined && !['Orphan', 'Background', 'Foreground'].includes(String(policy))) {
    throw badRequest(`propagationPolicy must be Orphan, Background or Foreground, not ${JSON.stringify(policy)}`)
  }
  const dryRun = [given.dryRun, query.getAll('dryRun')].flat().includes('All')
  return {
    dryRun,
    maxGracePeriodSeconds,
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(policy || orphan ? { propagationPolicy: (policy ?? orphan) as 'Orphan' } : {}),
    ...(isObject(given.preconditions) ? { preconditions: given.preconditions } : {}),
  }
}

export function remove(registry: Registry, request: WriteRequest, maxGracePeriodSeconds: number): Deletion {
  const { kind, namespace, name = '' } = request.route
  return deleteObject(registry, kind, namespace, name, deleteOptions(request, maxGracePeriodSeconds))
}

export const deletedStatus = (route: Route, { metadata }: KubeObject): Status => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: {
    name: metadata.name,
    ...(route.kind.group === '' ? {} : { group: route.kind.group }),
    kind: route.kind.plural,
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
  },
})

/** `deletecollection`: everything a list with the same query would show. */
export function removeAll(
  registry: Registry,
  request: WriteRequest,
  keys: readonly string[],
  maxGracePeriodSeconds: number,
): KubeObject[] {
  const { kind } = request.route
  const options = deleteOptions(request, maxGracePeriodSeconds)
  return keys.flatMap((key) => {
    const { metadata } = registry.store.get(resourceOf(kind), key)?.object ?? {}
    return metadata ? [deleteObject(registry, kind, metadata.namespace, metadata.name, options).object] : []
  })
}
