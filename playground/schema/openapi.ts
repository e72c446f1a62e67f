import { createHash } from 'node:crypto'
import type { Kinds } from '../kinds/index.js'
import type { Kind } from '../kinds/kind.js'
import type { JsonObject } from '../objects/types.js'
import { definitions, resolve } from './definitions.js'
import type { Definition, Field } from './parse.js'

function scalarSchema(name: string, type: string, format: string | undefined): JsonObject {
  if (name === 'Quantity') return { type: 'string', format: 'quantity' }
  return format === undefined ? { type } : { type, format }
}

function oneSchema(owner: Definition, field: Field): JsonObject {
  const type = resolve(owner, field)
  if (type.kind === 'open') return { type: 'object' }
  if (type.kind === 'scalar') return scalarSchema(type.name, type.type, type.format)
  return { $ref: `#/components/schemas/${type.definition.name}` }
}

/** A description beside a reference is kept only inside `allOf`. */
function referenced(reference: JsonObject, description: string): JsonObject {
  if (!('$ref' in reference)) return description === '' ? reference : { description, ...reference }
  return { description, default: {}, allOf: [reference] }
}

function fieldSchema(owner: Definition, field: Field): JsonObject {
  const one = oneSchema(owner, field)
  if (field.shape === 'one') return referenced(one, field.description)
  const extensions: JsonObject = {}
  if (field.mergeKey !== undefined) extensions['x-kubernetes-patch-strategy'] = 'merge'
  if (field.mergeKey) extensions['x-kubernetes-patch-merge-key'] = field.mergeKey
  if (field.shape === 'map') {
    if (field.atomic) extensions['x-kubernetes-map-type'] = 'atomic'
    return { description: field.description, type: 'object', additionalProperties: one, ...extensions }
  }
  if (field.mapKeys) extensions['x-kubernetes-list-map-keys'] = field.mapKeys
  extensions['x-kubernetes-list-type'] = field.mapKeys ? 'map' : field.set ? 'set' : 'atomic'
  return { description: field.description, type: 'array', items: one, ...extensions }
}

const groupVersionKind = ({ group, version, kind }: { group: string; version: string; kind: string }) => ({
  group,
  version,
  kind,
})

function schemaOf(definition: Definition, kinds: readonly Kind[]): JsonObject {
  const properties = Object.fromEntries(
    [...definition.fields].map(([name, field]) => [name, fieldSchema(definition, field)]),
  )
  const required = [...definition.fields].filter(([, field]) => field.required).map(([name]) => name)
  const own = kinds.filter(({ type }) => type === definition.name).map(groupVersionKind)
  return {
    description: definition.description,
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    properties,
    ...(own.length > 0 ? { 'x-kubernetes-group-version-kind': own } : {}),
  }
}

const allSchemas = (kinds: Kinds): Record<string, JsonObject> =>
  Object.fromEntries([...definitions.values()].map((definition) => [definition.name, schemaOf(definition, kinds.all)]))

/** The paths of one object and of its collection. */
function pathsOf(kind: Kind): { collection: string; object: string } {
  const base = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const collection = kind.namespaced ? `${base}/namespaces/{namespace}/${kind.plural}` : `${base}/${kind.plural}`
  return { collection, object: `${collection}/{name}` }
}

/** kubectl looks at the parameters of `patch` to learn whether a server knows dry runs and field validation. */
const writeParameters = ['dryRun', 'fieldManager', 'fieldValidation', 'force'] as const

function operation(kind: Kind, action: string, parameters: readonly string[]): JsonObject {
  return {
    operationId: `${action}${kind.kind}`,
    parameters: parameters.map((name) => ({ name, in: 'query', schema: { type: 'string', uniqueItems: true } })),
    responses: { '200': { description: 'OK' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': groupVersionKind(kind),
  }
}

/** `/openapi/v3/<group version>`. */
export function openApiV3(kinds: Kinds, group: string, version: string): JsonObject | undefined {
  const own = kinds.groupVersions.find((item) => item.group === group && item.version === version)
  if (!own) return undefined
  const paths: JsonObject = {}
  for (const kind of own.kinds) {
    const { collection, object } = pathsOf(kind)
    paths[collection] = { get: operation(kind, 'list', []), post: operation(kind, 'post', writeParameters) }
    paths[object] = {
      get: operation(kind, 'get', []),
      put: operation(kind, 'put', writeParameters),
      patch: operation(kind, 'patch', writeParameters),
      delete: operation(kind, 'delete', ['dryRun', 'gracePeriodSeconds', 'propagationPolicy']),
    }
  }
  const info = { title: 'kpng playground', version: 'v1' }
  return { openapi: '3.0.0', info, paths, components: { schemas: allSchemas(kinds) } }
}

/** `/openapi/v3`: where the documents are. The hash lets clients keep them. */
export function openApiV3Index(kinds: Kinds): JsonObject {
  const hash = createHash('sha256')
    .update(JSON.stringify(allSchemas(kinds)))
    .digest('hex')
  const paths = kinds.groupVersions.map(({ group, version }) => {
    const path = group === '' ? `api/${version}` : `apis/${group}/${version}`
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }] as const
  })
  return { paths: Object.fromEntries(paths) }
}
