import { apiVersionOf, type Kind } from '../kinds/kind.js'
import { isObject, type KubeObject } from '../objects/types.js'
import { definitions } from '../schema/definitions.js'
import { checkSchema } from '../schema/strict.js'
import { badRequest } from '../status/status.js'

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

/**
 * Makes an object of a request's body: it must be of the kind, its values of the right types. Unknown fields are dropped;
 * the writer decides whether silently, with warnings or as an error.
 */
export function decode(
  kind: Kind,
  body: unknown,
  validation: FieldValidation,
): { object: KubeObject; warnings: string[] } {
  if (!isObject(body)) throw badRequest(`the body of the request must be an object of the kind ${kind.kind}`)
  const expected = apiVersionOf(kind)
  const given = `${body.kind ?? kind.kind} in version "${body.apiVersion ?? expected}"`
  if (body.apiVersion !== undefined && body.apiVersion !== expected) {
    const why = `the API version in the data (${body.apiVersion}) does not match the expected API version (${expected})`
    throw badRequest(why)
  }
  if (body.kind !== undefined && body.kind !== kind.kind) {
    throw badRequest(
      `${given} cannot be handled as a ${kind.kind}: converting (v1.${body.kind}) to (v1.${kind.kind}): unknown conversion`,
    )
  }
  body.apiVersion = expected
  body.kind = kind.kind
  if (body.metadata === undefined || body.metadata === null) body.metadata = {}
  const definition = definitions.get(kind.type)
  const { unknown, mistyped } = definition ? checkSchema(body, definition) : { unknown: [], mistyped: [] }
  const prefix = `${given} cannot be handled as a ${kind.kind}: `
  if (mistyped.length > 0) throw badRequest(prefix + mistyped.join(', '))
  if (validation === 'Strict' && unknown.length > 0) {
    throw badRequest(`${prefix}strict decoding error: ${unknown.join(', ')}`)
  }
  return { object: body as KubeObject, warnings: validation === 'Warn' ? unknown : [] }
}
