import type { Kinds } from '../kinds/index.js'
import type { Kind } from '../kinds/kind.js'
import { isObject, type JsonObject } from '../objects/types.js'
import { allSchemas, groupVersionKind, pathsOf, writeParameters } from './openapi.js'
import { message, text, truth } from './protobuf.js'

/** `/openapi/v2` as JSON. */
export function openApiV2(kinds: Kinds): JsonObject {
  const paths: JsonObject = {}
  for (const kind of kinds.all) {
    const gvk = groupVersionKind(kind)
    const parameters = writeParameters.map((name) => ({ name, in: 'query', type: 'string', uniqueItems: true }))
    const patch = { parameters, responses: { '200': { description: 'OK' } }, 'x-kubernetes-group-version-kind': gvk }
    paths[pathsOf(kind).object] = { patch }
  }
  const info = { title: 'kpng playground', version: 'v1' }
  return { swagger: '2.0', info, paths, definitions: allSchemas(kinds, '#/definitions/') }
}

/**
 * The same as the protobuf message `openapi.v2.Document`, which is all that kubectl before 1.27 asks for. Field numbers
 * are those of gnostic's OpenAPIv2.proto; only what kubectl reads is written.
 */
export function openApiV2Protobuf(kinds: Kinds): Buffer {
  const schemas = Object.entries(allSchemas(kinds, '#/definitions/'))
  const named = schemas.map(([name, schema]) => message(1, text(1, name), message(2, schemaFields(schema))))
  const paths = kinds.all.map((kind) => message(2, text(1, pathsOf(kind).object), message(2, pathItem(kind))))
  return Buffer.concat([
    text(1, '2.0'),
    message(2, text(1, 'kpng playground'), text(2, 'v1')),
    message(8, ...paths),
    message(9, ...named),
  ])
}

/** Any YAML is allowed in an extension; JSON is YAML. */
const extension = (number: number, name: string, value: unknown): Buffer =>
  message(number, text(1, name), message(2, text(2, JSON.stringify(value))))

function pathItem(kind: Kind): Buffer {
  const parameters = writeParameters.map((name) => {
    const query = message(3, text(2, 'query'), text(4, name), text(6, 'string'), truth(20))
    return message(8, message(1, message(2, query)))
  })
  const responses = message(9, message(1, text(1, '200'), message(2, message(1, text(1, 'OK')))))
  return message(8, ...parameters, responses, extension(13, 'x-kubernetes-group-version-kind', groupVersionKind(kind)))
}

function schemaFields(schema: JsonObject): Buffer {
  const parts: Buffer[] = []
  if (typeof schema.$ref === 'string') parts.push(text(1, schema.$ref))
  if (typeof schema.format === 'string') parts.push(text(2, schema.format))
  if (typeof schema.description === 'string') parts.push(text(4, schema.description))
  if (Array.isArray(schema.required)) parts.push(...schema.required.map((name) => text(19, String(name))))
  if (isObject(schema.additionalProperties)) {
    parts.push(message(21, message(1, schemaFields(schema.additionalProperties))))
  }
  if (typeof schema.type === 'string') parts.push(message(22, text(1, schema.type)))
  if (isObject(schema.items)) parts.push(message(23, message(1, schemaFields(schema.items))))
  if (isObject(schema.properties)) {
    const properties = Object.entries(schema.properties).map(([name, property]) =>
      message(1, text(1, name), message(2, schemaFields(property as JsonObject))),
    )
    parts.push(message(25, ...properties))
  }
  for (const [name, value] of Object.entries(schema)) if (name.startsWith('x-')) parts.push(extension(31, name, value))
  return Buffer.concat(parts)
}
