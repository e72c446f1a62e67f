import { clone, equal } from '../objects/json.js'
import { isObject, type JsonObject } from '../objects/types.js'
import { definitionOf } from '../schema/definitions.js'
import type { Definition, Field } from '../schema/parse.js'

/**
 * Strategic merge patch: a merge patch that knows the type. Lists with a merge key merge by it, with the directives
 * `$patch: delete|replace`, `$setElementOrder/x`, `$deleteFromPrimitiveList/x` and `$retainKeys`.
 */
export function strategicPatch(target: unknown, patch: unknown, definition: Definition | undefined): unknown {
  if (!isObject(patch)) return clone(patch)
  const { $patch: directive, $retainKeys: retained, ...fields } = patch
  if (directive === 'replace') return clone(fields)
  if (directive === 'delete') return {}
  const result: JsonObject = isObject(target) ? { ...target } : {}
  if (Array.isArray(retained)) for (const name of Object.keys(result)) if (!retained.includes(name)) delete result[name]
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('$')) continue
    if (value === null) delete result[name]
    else result[name] = patchField(result[name], value, definition, definition?.fields.get(name))
  }
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('$')) applyListDirective(result, name, value, definition)
  }
  return result
}

function patchField(
  current: unknown,
  patch: unknown,
  owner: Definition | undefined,
  field: Field | undefined,
): unknown {
  const type = definitionOf(owner, field)
  if (Array.isArray(patch)) {
    if (field?.mergeKey === undefined || !Array.isArray(current)) return clone(withoutDirectives(patch))
    return field.mergeKey === '' ? union(current, patch) : mergeByKey(current, patch, field.mergeKey, type)
  }
  return strategicPatch(current, patch, field?.shape === 'one' ? type : undefined)
}

const union = (current: unknown[], patch: unknown[]): unknown[] => [
  ...current,
  ...patch.filter((item) => !current.some((other) => equal(other, item))),
]

/** A new list has nothing to delete, so directives in it only vanish. */
const withoutDirectives = (items: unknown[]): unknown[] =>
  items.filter((item) => !(isObject(item) && '$patch' in item && item.$patch !== 'merge'))

function mergeByKey(current: unknown[], patch: unknown[], key: string, type: Definition | undefined): unknown[] {
  if (patch.some((item) => isObject(item) && item.$patch === 'replace' && Object.keys(item).length === 1)) {
    return clone(withoutDirectives(patch))
  }
  let result = [...current]
  for (const item of patch) {
    if (!isObject(item)) continue
    const matches = (other: unknown) => isObject(other) && equal(other[key], item[key])
    if (item.$patch === 'delete') {
      result = result.filter((other) => !matches(other))
      continue
    }
    const index = result.findIndex(matches)
    const merged = strategicPatch(index < 0 ? {} : result[index], item, type)
    if (index < 0) result.push(merged)
    else result[index] = merged
  }
  return result
}

function applyListDirective(
  result: JsonObject,
  name: string,
  value: unknown,
  definition: Definition | undefined,
): void {
  const [directive = '', list = ''] = name.split('/')
  const items = result[list]
  if (!Array.isArray(items) || !Array.isArray(value)) return
  if (directive === '$deleteFromPrimitiveList') result[list] = items.filter((item) => !value.includes(item))
  if (directive === '$setElementOrder')
    result[list] = ordered(items, value, definition?.fields.get(list)?.mergeKey ?? '')
}

/** The listed items in the listed order; one that the writer did not know stays behind the item it followed. */
function ordered(items: unknown[], order: unknown[], key: string): unknown[] {
  const identity = (item: unknown) => JSON.stringify(isObject(item) && key !== '' ? item[key] : item)
  const position = new Map(order.map((item, index) => [identity(item), index]))
  let last = -1
  const ranked = items.map((item, index) => {
    const own = position.get(identity(item))
    if (own !== undefined) last = own
    return { item, index, rank: own ?? last + 0.5 }
  })
  return ranked.sort((a, b) => a.rank - b.rank || a.index - b.index).map(({ item }) => item)
}
