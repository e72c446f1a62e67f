import type { KubeObject } from '../objects/types.js'
import { badRequest } from '../status/status.js'

interface FieldRequirement {
  field: string
  value: string
  equal: boolean
}

/** The fields of a kind that can be selected by; a kind may add to `metadata.name` and `metadata.namespace`. */
export type SelectableFields = Readonly<Record<string, (object: KubeObject) => string>>

export const metadataFields: SelectableFields = {
  'metadata.name': (object) => object.metadata.name,
  'metadata.namespace': (object) => object.metadata.namespace ?? '',
}

/** `metadata.name=x,spec.type!=NodePort`; a field the kind cannot be selected by is refused, as the API server does. */
export function parseFieldSelector(text: string, fields: SelectableFields): FieldRequirement[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const match = /^([^=!]+?)\s*(==|=|!=)\s*(.*)$/.exec(part)
      if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`)
      const [, field = '', operator, value = ''] = match
      if (!Object.hasOwn(fields, field)) throw badRequest(`field label not supported: ${field}`)
      return { field, value, equal: operator !== '!=' }
    })
}

export const matchesFields = (
  requirements: readonly FieldRequirement[],
  fields: SelectableFields,
  object: KubeObject,
): boolean => requirements.every(({ field, value, equal }) => (fields[field]?.(object) === value) === equal)
