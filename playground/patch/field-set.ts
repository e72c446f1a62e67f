import { type FieldsV1, isObject, type JsonObject } from '../objects/types.js'
import { definitionOf } from '../schema/definitions.js'
import type { Definition, Field } from '../schema/parse.js'

/**
 * The fields of an object as server-side apply sees them, by path. A path is a list of elements in the notation of
 * managedFields (`f:name`, `k:{"port":80}`, `v:"x"`) joined by a character that cannot occur in them.
 */
export type FieldSet = Map<string, unknown>

const separator = '\u0000'
/** The value of a path that only says "this list, map or item is there". */
const present = Symbol('present')

export const join = (path: string, element: string): string => (path === '' ? element : path + separator + element)
export const elementsOf = (path: string): string[] => path.split(separator)
export const isUnder = (path: string, ancestor: string): boolean => path.startsWith(ancestor + separator)

/** What the server decides is nobody's field. */
const unowned = new Set(['apiVersion', 'kind'])
const unownedMeta = new Set([
  ...['name', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp', 'deletionTimestamp'],
  ...['deletionGracePeriodSeconds', 'selfLink', 'managedFields'],
])

/** `containers`: whether lists and maps themselves are members, as they are for updates but not for apply. */
export function fieldsOf(object: JsonObject, definition: Definition | undefined, containers: boolean): FieldSet {
  const set: FieldSet = new Map()
  for (const [name, value] of Object.entries(object)) {
    if (unowned.has(name)) continue
    const field = definition?.fields.get(name)
    if (name !== 'metadata') collect(set, `f:${name}`, value, definition, field, containers)
    else if (isObject(value)) {
      const meta = Object.fromEntries(Object.entries(value).filter(([key]) => !unownedMeta.has(key)))
      collect(set, 'f:metadata', meta, definition, field, containers)
    }
  }
  return set
}

function collect(
  set: FieldSet,
  path: string,
  value: unknown,
  owner: Definition | undefined,
  field: Field | undefined,
  containers: boolean,
): void {
  if (value === undefined) return
  const type = definitionOf(owner, field)
  if (field?.shape === 'list' && Array.isArray(value) && !field.atomic) {
    if (containers) set.set(path, present)
    for (const item of value) {
      if (field.set) set.set(join(path, `v:${JSON.stringify(item)}`), present)
      else if (isObject(item)) {
        const at = join(path, keyElement(item, field, type))
        set.set(at, present)
        for (const [name, part] of Object.entries(item)) {
          collect(set, join(at, `f:${name}`), part, type, type?.fields.get(name), containers)
        }
      }
    }
    return
  }
  if (field?.shape === 'map' && isObject(value) && !field.atomic) {
    if (containers) set.set(path, present)
    for (const [name, part] of Object.entries(value)) set.set(join(path, `f:${name}`), part)
    return
  }
  if (field?.shape === 'one' && type && isObject(value)) {
    if (Object.keys(value).length === 0 && path !== 'f:metadata' && path !== 'f:spec') set.set(path, present)
    for (const [name, part] of Object.entries(value)) {
      collect(set, join(path, `f:${name}`), part, type, type.fields.get(name), containers)
    }
    return
  }
  set.set(path, value)
}

/** `k:{"port":80,"protocol":"TCP"}`: a key that is left out counts with its default. */
export function keyElement(item: JsonObject, field: Field, type: Definition | undefined): string {
  const keys = [...(field.mapKeys ?? [])].sort()
  const values = keys.map((key) => [key, item[key] ?? type?.fields.get(key)?.defaultValue] as const)
  return `k:${JSON.stringify(Object.fromEntries(values.filter(([, value]) => value !== undefined)))}`
}

export function encodeFields(paths: Iterable<string>): FieldsV1 {
  const root: FieldsV1 = {}
  const members = new Set(paths)
  for (const path of [...members].sort()) {
    let node = root
    let at = ''
    for (const element of elementsOf(path)) {
      // A member that has children says so itself with a dot.
      if (at !== '' && members.has(at)) node['.'] ??= {}
      at = join(at, element)
      node[element] ??= {}
      node = node[element]
    }
  }
  return root
}

export function decodeFields(fields: FieldsV1 | undefined, prefix = ''): Set<string> {
  const paths = new Set<string>()
  for (const [element, below] of Object.entries(fields ?? {})) {
    if (element === '.') {
      if (prefix !== '') paths.add(prefix)
      continue
    }
    const path = join(prefix, element)
    if (Object.keys(below).length === 0) paths.add(path)
    else for (const inner of decodeFields(below, path)) paths.add(inner)
  }
  return paths
}

/** `.spec.ports[port=80,protocol="TCP"].targetPort`, for people. */
export function showPath(path: string): string {
  return elementsOf(path)
    .map((element) => {
      const text = element.slice(2)
      if (element.startsWith('f:')) return `.${text}`
      if (element.startsWith('v:')) return `[=${text}]`
      const keys = Object.entries(JSON.parse(text) as JsonObject)
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`
    })
    .join('')
}
